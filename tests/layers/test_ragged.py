"""Rows without their padding: the same numbers, computed for real tokens only."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import clearhead as ch
from clearhead.layers.ragged import Ragged
from clearhead.models.config import ModelConfig

COUNTS = (3, 7, 2)


def test_squeezed_and_spread_by_hand() -> None:
    ragged = Ragged(torch.tensor([1, 3, 2]), 3)
    rows = torch.arange(9.0).view(3, 3, 1)
    assert ragged.unpad(rows).flatten().tolist() == [0, 3, 4, 5, 6, 7]
    assert ragged.pad(ragged.unpad(rows)).flatten().tolist() == [0, 0, 0, 3, 4, 5, 6, 7, 0]


def test_gradients_pass_both_ways() -> None:
    ragged = Ragged(torch.tensor([2, 1]), 2)
    rows = torch.ones(2, 2, 5, requires_grad=True)
    (gradient,) = torch.autograd.grad((ragged.pad(ragged.unpad(rows)) * 3).sum(), rows)
    assert gradient[..., 0].tolist() == [[3, 3], [3, 0]]


def test_only_where_there_is_padding_to_save() -> None:
    assert Ragged.of(None, 7) is None
    assert Ragged.of(torch.tensor([7, 7, 7]), 7) is None
    assert Ragged.of(torch.tensor(COUNTS), 7) is not None


def _model(**options: Any) -> nn.Module:
    torch.manual_seed(0)
    sizes: dict[str, Any] = {"vocab": 53, "model": 24, "layers": 2, "heads": 3, "feed_forward": 40}
    config = ModelConfig(**(sizes | {"context": 19} | options))
    kind = {"encoder": ch.Encoder, "decoder": ch.Decoder}[config.kind]
    return kind(config).eval()


@pytest.mark.parametrize(
    "options",
    [
        {"kind": "encoder", "head": "none", "positions": "learned"},
        {"kind": "encoder", "head": "none", "positions": "relative"},
        {"kind": "decoder", "positions": "rotary", "kv_heads": 1},
        {"kind": "decoder", "positions": "alibi"},
    ],
)
def test_a_padded_row_gives_what_it_gives_alone(options: dict[str, Any]) -> None:
    model = _model(**options)
    ids = torch.randint(0, 53, (3, 7))
    real = torch.arange(7) < torch.tensor(COUNTS)[:, None]
    seen: list[int] = []
    hook = model.get_submodule("stack.blocks.0").register_forward_pre_hook(
        lambda _, args: seen.append(args[0].shape[1])
    )
    got = model(ids, real=real)
    hook.remove()
    assert seen == [sum(COUNTS)]  # of 21 places, 12 were computed
    for row, count in enumerate(COUNTS):
        alone: Tensor = model(ids[row : row + 1, :count])
        torch.testing.assert_close(got[row, :count], alone[0], atol=1e-5, rtol=1e-5)


def test_in_both_halves_of_an_encoder_decoder() -> None:
    torch.manual_seed(0)
    model = ch.EncoderDecoder(
        ModelConfig(
            kind="encoder-decoder", vocab=53, model=24, layers=2, encoder_layers=1, heads=3,
            feed_forward=40, context=19,
        )
    ).eval()  # fmt: skip
    source, target = torch.randint(0, 53, (3, 5)), torch.randint(0, 53, (3, 7))
    lengths = torch.tensor([5, 1, 3])
    got = model(
        source, target,
        source_real=torch.arange(5) < lengths[:, None],
        target_real=torch.arange(7) < torch.tensor(COUNTS)[:, None],
    )  # fmt: skip
    for row, (count, length) in enumerate(zip(COUNTS, lengths.tolist(), strict=True)):
        alone = model(source[row : row + 1, :length], target[row : row + 1, :count])
        torch.testing.assert_close(got[row, :count], alone[0], atol=1e-5, rtol=1e-5)
