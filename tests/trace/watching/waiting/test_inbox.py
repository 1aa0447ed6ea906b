"""Steps that are put down as they came are the same records in the end."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers
from torch import Tensor

from clearhead.trace.watching.waiting import inbox
from clearhead.trace.watching.watch import watch


def llama(attention: str, layers: int = 2) -> Any:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=97, hidden_size=24, intermediate_size=11, num_hidden_layers=layers,
        num_attention_heads=6, num_key_value_heads=2, attn_implementation=attention,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config).eval()


def steps(model: Any, change: Any = lambda cache: None, count: int = 7) -> list[Tensor]:
    """Greedy steps after a prompt of five tokens."""
    ids, logits = torch.arange(3, 8)[None], []
    cache = transformers.DynamicCache(config=model.config)
    with torch.no_grad():
        for _ in range(count):
            found = model(ids, past_key_values=cache)
            logits.append(found.logits)
            ids = found.logits[:, -1:].argmax(-1)
            change(cache)
    return logits


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("most", [1, 3, 64])
def test_letters_are_read_in_any_portions(
    attention: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = llama(attention)
    plain = steps(model)
    monkeypatch.setattr(inbox, "MOST_LETTERS", most)
    with watch(model) as seen:
        watched = steps(model)
    assert all(torch.equal(one, other) for one, other in zip(plain, watched, strict=True))
    assert seen.verify().exact and seen.missed == "" and len(seen.runs) == 1
    assert seen["L1"].record.query.shape == (1, 6, 11, 4)
    ids = torch.cat([torch.arange(3, 8)[None], *(one[:, -1:].argmax(-1) for one in plain)], dim=1)
    with torch.no_grad(), watch(model) as whole:
        model(ids[:, :-1])
    ours, theirs = (each["L1"].weights(slice(None), slice(None)) for each in (seen, whole))
    assert float((ours - theirs).abs().max()) < 1e-6


def test_a_cache_that_is_written_to_is_noticed() -> None:
    """Its keys are what waits."""

    def write(cache: Any) -> None:
        cache.layers[0].keys.mul_(1.5)

    model = llama("sdpa")
    with watch(model) as seen:
        steps(model, write)
    verdict = seen.verify() if seen.records else None
    assert "written over" in seen.missed or verdict is None or verdict.exact
    assert all(record.facts.path != "model.layers.0.self_attn" for record in seen.records) or (
        verdict is not None and verdict.exact
    )


def test_keys_that_are_repeated_are_compared() -> None:
    key = torch.randn(1, 2, 5, 3)
    inside = key.repeat_interleave(3, dim=1)
    assert inbox._repeats(inside, key)
    assert not inbox._repeats(inside.flip(2), key)
