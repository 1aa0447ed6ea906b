"""Attention in windows: against the weights that the model itself reports."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import LongformerConfig, LongformerModel

from clearhead.trace.watching.watch import watch

WINDOW, HEADS, TOKENS = 2, 3, 20


def longformer(**options: Any) -> LongformerModel:
    torch.manual_seed(0)
    config = LongformerConfig(
        vocab_size=97, hidden_size=6 * HEADS, num_hidden_layers=1, num_attention_heads=HEADS,
        intermediate_size=11, attention_window=2 * WINDOW, max_position_embeddings=31, **options,
    )  # fmt: skip
    return LongformerModel(config).eval()


def placed(local: Tensor, tokens: list[list[int]]) -> Tensor:
    """(batch, head, query, global + window) as (batch, head, query, key)."""
    batch, extra = len(local), local.shape[-1] - 2 * WINDOW - 1
    whole = torch.zeros(batch, HEADS, TOKENS, TOKENS)
    for sequence in range(batch):
        for row in range(TOKENS):
            for place, column in enumerate(range(row - WINDOW, row + WINDOW + 1)):
                if 0 <= column < TOKENS:
                    whole[sequence, :, row, column] += local[sequence, :, row, extra + place]
            for place, column in enumerate(tokens[sequence]):
                whole[sequence, :, row, column] += local[sequence, :, row, place]
    return whole


@pytest.mark.parametrize("tokens", [[[], []], [[0], [0, 7]]])
def test_windows_and_global_tokens(tokens: list[list[int]]) -> None:
    model, ids = longformer(), torch.randint(5, 97, (2, TOKENS))
    real = torch.ones_like(ids)
    real[0, 17:] = 0
    asked = torch.zeros_like(ids)
    for sequence, places in enumerate(tokens):
        asked[sequence, places] = 1
    given = {"attention_mask": real, "global_attention_mask": asked}
    with torch.no_grad():
        plain = model(ids, **given, output_attentions=True)
        with watch(model) as seen:
            watched = model(ids, **given)
    assert torch.equal(plain.last_hidden_state, watched.last_hidden_state)
    assert seen.missed == "" and seen.verify().exact
    ours = torch.stack([seen["L0"].of(batch=n).weights(slice(None), slice(None)) for n in (0, 1)])
    assert float((ours - placed(plain.attentions[0], tokens)).abs().max()) < 1e-6
    if tokens[0]:
        theirs = plain.global_attentions[0].transpose(2, 3)
        second = seen["L1"].of(batch=1).weights(slice(None), slice(None))
        assert float((second - theirs[1]).abs().max()) < 1e-6
        assert "global attention" in seen["L0"].record.facts.note


@pytest.mark.parametrize("reason", ["dropout", "linear", "something else"])
def test_what_cannot_be_described_is_named(reason: str) -> None:
    model = longformer(attention_probs_dropout_prob=0.3)
    attention: Any = model.encoder.layer[0].attention.self
    match reason:
        case "dropout":
            model.train()
        case "linear":
            attention.key = torch.nn.Sequential(attention.key)
        case "something else":
            attention.query.register_forward_hook(lambda _m, _a, output: output * 1.5)
    with torch.no_grad(), watch(model) as seen:
        model(torch.randint(5, 97, (1, TOKENS)))
    assert reason in seen.missed and not seen.records
