"""Adding an adapter to weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from clearhead.checkpoints.adapters.adapter import Adapter, LowRank, add_adapter
from clearhead.checkpoints.adapters.base import Base
from clearhead.errors import CheckpointError
from clearhead.models.config import ModelConfig
from clearhead.models.decoder import Decoder

NAME = "stack.blocks.1.feed_forward.up.weight"


@pytest.fixture
def model() -> Decoder:
    return Decoder(ModelConfig(kind="decoder", vocab=31, context=17, model=6, layers=2, heads=3,
                               feed_forward=5))  # fmt: skip


def low_rank(rows: int = 5) -> LowRank:
    return LowRank(torch.arange(12.0).view(2, 6), torch.ones(rows, 2), 0.5)


def test_a_number_by_hand() -> None:
    assert low_rank().difference[4].tolist() == [3, 4, 5, 6, 7, 8]  # (n + (n + 6)) / 2


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_weights_keep_their_type_and_the_others_their_bits(
    model: Decoder, dtype: torch.dtype
) -> None:
    model.to(dtype).requires_grad_(False)
    before = {name: tensor.clone() for name, tensor in model.named_parameters()}
    add_adapter(model, Adapter({NAME: low_rank()}, Base("base")))
    for name, tensor in model.named_parameters():
        assert tensor.dtype is dtype and not tensor.requires_grad
        added = low_rank().difference if name == NAME else torch.zeros(())
        assert torch.equal(tensor, (before[name].float() + added).to(dtype))


@pytest.mark.parametrize(
    ("name", "rows", "message"),
    [(NAME, 7, r"and the model has one of shape \(5, 6\)"), ("other.weight", 5, "has none")],
)
def test_what_does_not_fit(model: Decoder, name: str, rows: int, message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        add_adapter(model, Adapter({name: low_rank(rows)}, Base("base")))


def test_the_blocks_of_a_file_become_floats(gguf_model: Callable[[], Decoder]) -> None:
    quantised, plain = gguf_model(), gguf_model()
    name = "stack.blocks.0.attention.query.weight"
    parameter = dict(quantised.named_parameters())[name]
    assert type(parameter).__name__ == "QuantisedTensor"
    added = LowRank(torch.randn(2, parameter.shape[1]), torch.randn(parameter.shape[0], 2), 0.5)
    add_adapter(quantised, Adapter({name: added}, Base("base")))
    found = dict(quantised.named_parameters())[name]
    blocks: Any = dict(plain.named_parameters())[name]
    wanted = blocks.floats() + added.difference
    torch.testing.assert_close(found, wanted)
