"""Projections with bias, residual and activation, against torch on dequantised numbers."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
import torch

from clearhead.engine.engine import engine_runs_here
from clearhead.engine.kernels.structures import (
    BLOCK,
    SCRATCH_BYTES,
    TILE_RESULTS_BYTES,
    UNIT_BYTES,
)
from clearhead.engine.weights import pack_matrix
from tests.shared.engine_steps import (
    PreparedStep,
    call,
    decoder,
    dequantised_vectors,
    quantised_vectors,
)

pytestmark = pytest.mark.skipif(not engine_runs_here(), reason="no OpenMP or half precision here")


def inputs(prepared: PreparedStep, tokens: int, width: int) -> torch.Tensor:
    """Random quantised vectors in the step's inputs, and their values."""
    stored = quantised_vectors(np.random.default_rng(3).normal(size=(tokens, width)))
    prepared.memory("inputs").view(-1)[: len(stored)] = torch.from_numpy(stored)
    return prepared.vectors("inputs", width // 32, tokens)


def test_tiles_per_unit() -> None:
    structure = pack_matrix(torch.randn(64, 96)).structure()  # 3 groups of 544 bytes to a tile
    address = ctypes.addressof(structure)
    assert call("tiles_per_unit", address, 1) == UNIT_BYTES // (3 * 544)
    assert call("tiles_per_unit", address, 2) == 14  # 15, but an even number
    assert call("tiles_per_unit", address, 64) == 2


def test_project_a_whole_block() -> None:
    torch.manual_seed(3)
    packed = pack_matrix(torch.randn(48, 64), torch.randn(48))
    structure, tokens = packed.structure(), BLOCK
    vectors = quantised_vectors(np.random.default_rng(3).normal(size=(tokens, 64)))
    target, results = torch.zeros(tokens, 64), torch.zeros(2 * TILE_RESULTS_BYTES // 4)
    for first, last in ((0, 1), (1, 9)):  # the last unit may go beyond the last tile
        call(
            "project_tiles", ctypes.addressof(structure), first, last, vectors.ctypes.data,
            tokens, target.data_ptr(), 4 * 64, results.data_ptr(),
        )  # fmt: skip
    values = dequantised_vectors(vectors, 2, tokens)
    assert packed.bias is not None
    wanted = values @ packed.dequantised().double().T + packed.bias
    torch.testing.assert_close(target.double(), wanted, rtol=0, atol=2e-5)


def test_residual() -> None:
    prepared = PreparedStep(decoder(), [[3, 4, 5]], [0])
    packed = pack_matrix(torch.randn(44, 64), torch.randn(44))
    structure, values = packed.structure(), inputs(prepared, 3, 64)
    base, results = torch.randn(3, 64), torch.zeros(2 * TILE_RESULTS_BYTES // 4)
    call(
        "add_projected_tiles", prepared.address, ctypes.addressof(structure), 0, 4,
        prepared.fields.inputs, base.data_ptr(), results.data_ptr(),
    )  # fmt: skip
    assert packed.bias is not None
    wanted = base + values @ packed.dequantised().double().T + packed.bias
    found = prepared.memory("states")[:3]
    torch.testing.assert_close(found.double(), wanted, rtol=0, atol=2e-5)


@pytest.mark.parametrize("changes", [{}, {"gated": False, "activation": "gelu"}])
def test_hidden_layer(changes: dict[str, Any]) -> None:
    model = decoder(feed_forward_bias=True, **changes)
    prepared = PreparedStep(model, [[3, 4, 5]], [0])
    values = inputs(prepared, 3, 64)[:, :44].float()
    scratch = torch.zeros(SCRATCH_BYTES // 4)
    for first, last in ((0, 1), (1, 9)):  # the last unit may go beyond the last group
        call(
            "hidden_groups", prepared.address, prepared.feed_forward, first, last,
            prepared.fields.inputs, scratch.data_ptr(),
        )  # fmt: skip
    layer: Any = model.stack.blocks[0].feed_forward

    def dense(linear: Any) -> torch.Tensor:
        weight = pack_matrix(linear.weight).dequantised()[:71, :44]
        return torch.nn.functional.linear(values, weight, linear.bias)

    if changes:
        wanted = torch.nn.functional.gelu(dense(layer.up))
    else:
        activation = getattr(torch.nn.functional, model.config.activation)
        wanted = activation(dense(layer.gate)) * dense(layer.up)
    found = prepared.vectors("hidden", 3, 3)
    torch.testing.assert_close(found[:, :71].float(), wanted, rtol=0, atol=2e-3)
    assert not found[:, 71:].any()


@pytest.mark.parametrize("tokens", [1, 2, 3])
def test_hidden_groups_together_or_one_by_one(tokens: int) -> None:
    """The results of several groups lie side by side, and do not meet."""
    model = decoder(feed_forward=32 * 19)
    found = []
    for size in (1, 7, BLOCK // tokens):
        prepared = PreparedStep(model, [[3, 4, 5][:tokens]], [0])
        inputs(prepared, tokens, 64)
        scratch = torch.full((SCRATCH_BYTES // 4,), torch.nan)
        for first in range(0, 19, size):
            call(
                "hidden_groups", prepared.address, prepared.feed_forward, first, first + size,
                prepared.fields.inputs, scratch.data_ptr(),
            )  # fmt: skip
        found.append(prepared.memory("hidden").clone())
    assert found[0].any()
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


def test_groups_per_unit() -> None:
    """Long streaks for one token while every thread has 16 units; one group for several tokens."""
    wide = decoder(feed_forward=32 * 200)

    def groups(tokens: int, threads: int) -> int:
        prepared = PreparedStep(wide, [[3, 4, 5][:tokens]], [0])
        return call("groups_per_unit", prepared.address, prepared.feed_forward, threads)

    assert [groups(1, threads) for threads in (1, 2, 5, 20)] == [12, 6, 2, 1]
    assert groups(3, 1) == 1
