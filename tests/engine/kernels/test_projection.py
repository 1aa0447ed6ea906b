"""Projections with bias, residual and activation, against torch on dequantised numbers."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
import torch

from clearhead.engine.engine import engine_runs_here
from clearhead.engine.weights import pack_matrix
from tests.shared.engine_steps import (
    PreparedStep,
    call,
    decoder,
    dequantised_vector,
    quantised_vector,
)

pytestmark = pytest.mark.skipif(not engine_runs_here(), reason="no OpenMP or half precision here")


def inputs(prepared: PreparedStep, tokens: int, width: int) -> torch.Tensor:
    """Random quantised vectors in the step's inputs, and their values."""
    generator = np.random.default_rng(3)
    memory = prepared.memory("inputs")
    for token in range(tokens):
        vector = quantised_vector(generator.normal(size=width))
        memory[token, : len(vector)] = torch.from_numpy(vector)
    return torch.stack([dequantised_vector(memory[i].numpy(), width // 32) for i in range(tokens)])


def test_tiles_per_unit() -> None:
    structure = pack_matrix(torch.randn(64, 96)).structure()  # 3 groups of 544 bytes to a tile
    address = ctypes.addressof(structure)
    assert call("tiles_per_unit", address, 1) == 24_576 // (3 * 544)
    assert call("tiles_per_unit", address, 5) == 24_576 // (3 * 544 * 5)
    assert call("tiles_per_unit", address, 64) == 1


def test_project_more_tokens_than_a_block() -> None:
    torch.manual_seed(3)
    packed = pack_matrix(torch.randn(48, 64), torch.randn(48))
    structure, tokens = packed.structure(), 67
    generator = np.random.default_rng(3)
    vectors = np.stack([quantised_vector(generator.normal(size=64)) for _ in range(tokens)])
    target, results = torch.zeros(tokens, 64), torch.zeros(64, 16)
    for first, last in ((0, 1), (1, 9)):  # the last unit may go beyond the last tile
        call(
            "project_tiles", ctypes.addressof(structure), first, last, vectors.ctypes.data,
            vectors.strides[0], tokens, target.data_ptr(), 4 * 64, results.data_ptr(),
        )  # fmt: skip
    values = torch.stack([dequantised_vector(row, 2) for row in vectors])
    assert packed.bias is not None
    wanted = values @ packed.dequantised().double().T + packed.bias
    torch.testing.assert_close(target.double(), wanted, rtol=0, atol=2e-5)


def test_residual() -> None:
    prepared = PreparedStep(decoder(), [[3, 4, 5]], [0])
    packed = pack_matrix(torch.randn(44, 64), torch.randn(44))
    structure, values = packed.structure(), inputs(prepared, 3, 64)
    base, results = torch.randn(3, 64), torch.zeros(64, 16)
    call(
        "add_projected_tiles", prepared.address, ctypes.addressof(structure), 0, 4,
        prepared.fields.inputs, prepared.fields.input_bytes, base.data_ptr(), results.data_ptr(),
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
    scratch = torch.zeros(18432 // 4)
    for group in range(3):
        call(
            "hidden_group", prepared.address, prepared.feed_forward, group,
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
    found = prepared.vectors("hidden", 3)[:3]
    torch.testing.assert_close(found[:, :71].float(), wanted, rtol=0, atol=2e-3)
    assert not found[:, 71:].any()
