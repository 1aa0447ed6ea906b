"""Embeddings, normalisation and quantisation of hidden states, against torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from clearhead.engine.engine import engine_runs_here
from clearhead.engine.weights import pack_matrix
from tests.shared.engine_steps import PreparedStep, call, decoder

pytestmark = pytest.mark.skipif(not engine_runs_here(), reason="no OpenMP or half precision here")

LEARNED: dict[str, Any] = {"positions": "learned", "norm": "layer", "embedding_scale": 1.5}


@pytest.mark.parametrize("changes", [{}, LEARNED], ids=["rotary", "learned"])
def test_embedding(changes: dict[str, Any]) -> None:
    model = decoder(**changes)
    prepared = PreparedStep(model, [[3, 52], [7]], [0, 5])
    for token in range(3):
        call("embed", prepared.address, token)
    table = pack_matrix(model.stack.embedding.tokens.weight).dequantised()
    wanted = table[[3, 52, 7], :44] * model.config.embedding_scale
    if changes:
        wanted = wanted + model.stack.embedding.positions(torch.tensor([0, 1, 5]))  # type: ignore[misc]
    found = prepared.memory("states")[:3]
    torch.testing.assert_close(found[:, :44], wanted, rtol=0, atol=1e-6)
    assert not found[:, 44:].any()


@pytest.mark.parametrize("changes", [{}, LEARNED], ids=["rms", "layer"])
def test_normalised_and_quantised(changes: dict[str, Any]) -> None:
    model = decoder(**changes)
    prepared = PreparedStep(model, [[3, 52, 7]], [0])
    prepared.fill("states")
    prepared.memory("states")[:, 44:] = 0
    states, step = prepared.memory("states"), prepared.fields
    normed = prepared.memory("normed")[1]
    call(
        "normalise_and_quantise", prepared.address, prepared.runner._attentions[0].norm, 1,
        normed.data_ptr(), step.inputs, 1, 3,
    )  # fmt: skip
    norm = model.stack.blocks[0].attention_residual.before  # type: ignore[union-attr]
    assert norm is not None
    torch.testing.assert_close(normed[:44], norm(states[1, :44]), rtol=1e-5, atol=1e-5)  # type: ignore[operator]
    assert not normed[44:].any()
    assert (step.model, step.model_width) == (44, 64)
    found = prepared.vectors("inputs", 2, 3)[1]
    torch.testing.assert_close(found, normed.double(), rtol=0, atol=1e-3)
    call(
        "normalise_and_quantise", prepared.address, 0, 2, normed.data_ptr(), step.inputs, 1, 3
    )  # no norm: the state itself
    found = prepared.vectors("inputs", 2, 3)[1]
    torch.testing.assert_close(found, states[2].double(), rtol=0, atol=1e-3)
