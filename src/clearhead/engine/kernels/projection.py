"""Projections: matrix products with bias, residual or activation. Some tiles at a time."""
# numba's decorators have no types, and only LLVM knows the type of a vector.
# mypy: disable-error-code="untyped-decorator, no-any-return"

from __future__ import annotations

from typing import Any

from numba import njit

from clearhead.engine.kernels.matrix import multiply_tiles
from clearhead.engine.kernels.numbers import activated, quantise_group
from clearhead.engine.kernels.parts import feed_forward_at, matrix_at, part, step_at
from clearhead.engine.kernels.structures import (
    BLOCK,
    GROUP,
    RESULTS_BYTES,
    STREAK_BYTES,
    TILE_RESULTS_BYTES,
    UNIT_BYTES,
)
from clearhead.kernels.compiling import INLINED
from clearhead.kernels.memory import load_floats, store_floats
from clearhead.kernels.vectors import add, multiply


@njit(**INLINED)
def biased(matrix: Any, tile: int, result: int) -> Any:
    """Load 16 results and add their bias."""
    found = load_floats(result)
    if matrix.bias != 0:
        found = add(found, load_floats(matrix.bias + 64 * tile))
    return found


@part
def tiles_per_unit(matrix_address: int, tokens: int) -> int:
    """The number of tiles in one unit of work; for several tokens an even one."""
    found = UNIT_BYTES // (matrix_at(matrix_address).tile_bytes * tokens)
    return max(1, found) if tokens == 1 else max(2, found // 2 * 2)


@part
def project_tiles(
    matrix_address: int, first: int, last: int, inputs: int, tokens: int,
    target: int, target_row: int, results: int,
) -> None:  # fmt: skip
    """Compute some tiles of target = matrix · inputs + bias, for each token; tiles beyond those of
    the matrix are of the next one."""
    before, tile = 0, first  # tiles of the matrices before this one
    last = min(last, matrix_at(matrix_address).all_tiles)
    while tile < last:
        while tile - before >= matrix_at(matrix_address).tiles:
            before += matrix_at(matrix_address).tiles
            matrix_address = matrix_at(matrix_address).next
        matrix = matrix_at(matrix_address)
        count = min(2, last - tile, before + matrix.tiles - tile)
        multiply_tiles(matrix_address, tile - before, count, inputs, tokens, results)
        for number in range(count):
            found = results + number * TILE_RESULTS_BYTES
            for token in range(tokens):
                address = target + token * target_row + 64 * (tile + number)
                store_floats(address, biased(matrix, tile + number - before, found + 64 * token))
        tile += count


@part
def add_projected_tiles(
    step_address: int, matrix_address: int, first: int, last: int, inputs: int, base: int,
    results: int,
) -> None:  # fmt: skip
    """Compute some tiles of states = base + matrix · inputs + bias."""
    step, matrix = step_at(step_address), matrix_at(matrix_address)
    last = min(last, matrix.tiles)
    for start in range(first, last, 2):
        count = min(2, last - start)
        multiply_tiles(matrix_address, start, count, inputs, step.tokens, results)
        for tile in range(start, start + count):
            found = results + (tile - start) * TILE_RESULTS_BYTES
            for token in range(step.tokens):
                address = 4 * token * step.model_width + 64 * tile
                added = biased(matrix, tile, found + 64 * token)
                store_floats(step.states + address, add(load_floats(base + address), added))


@part
def hidden_unit(
    step_address: int, layer_address: int, tile: int, up: int, gate: int, units: int
) -> None:
    """16 hidden units of each token out of its products: activation(gate) · up, or without a gate
    activation(up)."""
    step, layer = step_at(step_address), feed_forward_at(layer_address)
    for token in range(step.tokens):
        unit = biased(matrix_at(layer.up), tile, up + 64 * token)
        if layer.gate != 0:
            gates = biased(matrix_at(layer.gate), tile, gate + 64 * token)
            unit = multiply(activated(gates, step.activation), unit)
        else:
            unit = activated(unit, step.activation)
        store_floats(units + 128 * token, unit)


@part
def hidden_group(
    step_address: int, layer_address: int, group: int, up: int, gate: int, units: int
) -> None:
    """Quantise 32 hidden units out of the products of their tiles."""
    step = step_at(step_address)
    hidden_unit(step_address, layer_address, 2 * group, up, gate, units)
    up, gate = up + TILE_RESULTS_BYTES, gate + TILE_RESULTS_BYTES
    hidden_unit(step_address, layer_address, 2 * group + 1, up, gate, units + 64)
    groups = step.hidden_width // GROUP
    for token in range(step.tokens):
        first, second = load_floats(units + 128 * token), load_floats(units + 128 * token + 64)
        quantise_group(first, second, step.hidden, groups, group, token, step.tokens)


@part
def groups_per_unit(step_address: int, layer_address: int, threads: int) -> int:
    """The number of groups of hidden units in one unit of work: for several tokens one, for one
    token so many that memory is read in long streaks, while there is work enough for all."""
    step, layer = step_at(step_address), feed_forward_at(layer_address)
    if step.tokens > 1:
        return 1
    long = STREAK_BYTES // (4 * matrix_at(layer.up).tile_bytes)
    return max(1, min(long, BLOCK, step.hidden_width // GROUP // (16 * threads)))


@part
def hidden_groups(
    step_address: int, layer_address: int, first: int, last: int, inputs: int, results: int
) -> None:
    """Compute and quantise groups of 32 hidden units: all of the matrix up, then all of the gate.
    The results of a group lie side by side, those of the next behind them."""
    step, layer = step_at(step_address), feed_forward_at(layer_address)
    last, apart = min(last, step.hidden_width // GROUP), 64 * step.tokens
    gates = results + 2 * TILE_RESULTS_BYTES
    for number in range(last - first):
        up = results + apart * number
        multiply_tiles(layer.up, 2 * (first + number), 2, inputs, step.tokens, up)
    if layer.gate != 0:
        for number in range(last - first):
            gate = gates + apart * number
            multiply_tiles(layer.gate, 2 * (first + number), 2, inputs, step.tokens, gate)
    for number in range(last - first):
        up, gate, units = results + apart * number, gates + apart * number, results + RESULTS_BYTES
        hidden_group(step_address, layer_address, first + number, up, gate, units)
