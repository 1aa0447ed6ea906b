"""Projections: matrix products with bias, residual or activation. Some tiles at a time."""
# numba's decorators have no types, and only LLVM knows the type of a vector.
# mypy: disable-error-code="untyped-decorator, no-any-return"

from __future__ import annotations

from typing import Any

from numba import njit

from clearhead.engine.kernels.matrix import multiply_tile
from clearhead.engine.kernels.numbers import activated, quantise_group
from clearhead.engine.kernels.parts import feed_forward_at, matrix_at, part, step_at
from clearhead.engine.kernels.structures import (
    BLOCK,
    GROUP,
    RESULTS_BYTES,
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
    """The number of tiles in one unit of work."""
    matrix = matrix_at(matrix_address)
    return max(1, UNIT_BYTES // (matrix.tile_bytes * tokens))


@part
def project_tiles(
    matrix_address: int, first: int, last: int, inputs: int, stride: int, tokens: int,
    target: int, target_row: int, results: int,
) -> None:  # fmt: skip
    """Compute some tiles of target = matrix · inputs + bias, for each token; tiles beyond those of
    the matrix are of the next one."""
    before = 0  # tiles of the matrices before this one
    for tile in range(first, min(last, matrix_at(matrix_address).all_tiles)):
        while tile - before >= matrix_at(matrix_address).tiles:
            before += matrix_at(matrix_address).tiles
            matrix_address = matrix_at(matrix_address).next
        matrix = matrix_at(matrix_address)
        for start in range(0, tokens, BLOCK):
            count = min(BLOCK, tokens - start)
            address = inputs + start * stride
            multiply_tile(matrix_address, tile - before, address, stride, count, results)
            for token in range(count):
                address = target + (start + token) * target_row + 64 * tile
                store_floats(address, biased(matrix, tile - before, results + 64 * token))


@part
def add_projected_tiles(
    step_address: int, matrix_address: int, first: int, last: int, inputs: int, stride: int,
    base: int, results: int,
) -> None:  # fmt: skip
    """Compute some tiles of states = base + matrix · inputs + bias."""
    step, matrix = step_at(step_address), matrix_at(matrix_address)
    for tile in range(first, min(last, matrix.tiles)):
        multiply_tile(matrix_address, tile, inputs, stride, step.tokens, results)
        for token in range(step.tokens):
            address = 4 * token * step.model_width + 64 * tile
            added = biased(matrix, tile, results + 64 * token)
            store_floats(step.states + address, add(load_floats(base + address), added))


@part
def hidden_tiles(
    step_address: int, matrix_address: int, group: int, inputs: int, results: int
) -> None:
    """Two tiles of 16 rows, one after the other: memory is read on in one direction."""
    step = step_at(step_address)
    stride, tokens = step.input_bytes, step.tokens
    multiply_tile(matrix_address, 2 * group, inputs, stride, tokens, results)
    second = results + TILE_RESULTS_BYTES
    multiply_tile(matrix_address, 2 * group + 1, inputs, stride, tokens, second)


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
    step_address: int, layer_address: int, group: int, inputs: int, results: int
) -> None:
    """Compute and quantise 32 units of the hidden layer."""
    step, layer = step_at(step_address), feed_forward_at(layer_address)
    units, up, gate = results + RESULTS_BYTES, results, results + 2 * TILE_RESULTS_BYTES
    hidden_tiles(step_address, layer.up, group, inputs, up)
    if layer.gate != 0:
        hidden_tiles(step_address, layer.gate, group, inputs, gate)
    hidden_unit(step_address, layer_address, 2 * group, up, gate, units)
    up, gate = up + TILE_RESULTS_BYTES, gate + TILE_RESULTS_BYTES
    hidden_unit(step_address, layer_address, 2 * group + 1, up, gate, units + 64)
    for token in range(step.tokens):
        address = units + 128 * token
        vector = step.hidden + token * step.hidden_bytes
        groups = step.hidden_width // GROUP
        quantise_group(load_floats(address), load_floats(address + 64), vector, groups, group)
