"""Steps that are put down as they came are the same records in the end."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor

from clearhead.trace.watching.doors.transformers import described
from clearhead.trace.watching.observed_call import ObservedCall
from clearhead.trace.watching.waiting import inbox
from clearhead.trace.watching.waiting.bare_step import BareStep, bare_step
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


def gemma(attention: str) -> Any:
    """Its scores are capped, which is left to the long way."""
    torch.manual_seed(0)
    config = transformers.Gemma2Config(
        vocab_size=97, hidden_size=24, intermediate_size=11, num_hidden_layers=2, head_dim=4,
        num_attention_heads=6, num_key_value_heads=2, sliding_window=4,
        attn_logit_softcapping=2.0, attn_implementation=attention,
    )  # fmt: skip
    return transformers.Gemma2ForCausalLM(config).eval()


def same(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    return bool(one == other)


@pytest.mark.parametrize("padding", [0, 3])
@pytest.mark.parametrize(
    ("family", "attention"), [(llama, "sdpa"), (llama, "eager"), (gemma, "eager")]
)
def test_a_bare_step_is_what_its_arguments_say(
    family: Any, attention: str, padding: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    short: list[Any] = []
    full: list[Any] = []

    def listed(known: Any, calls: Any, result: Any, args: Any, kwargs: Any) -> BareStep | None:
        found = bare_step(known, calls, result, args, kwargs)
        if found is not None:
            short.append(found.call())
            full.append(described(calls, result, args, kwargs))
        return found

    monkeypatch.setattr(inbox, "bare_step", listed)
    model, ids = family(attention), torch.arange(3, 13).view(2, 5)
    there = torch.ones_like(ids)
    there[1, :padding] = 0
    with watch(model) as seen:
        model.generate(ids, attention_mask=there, max_new_tokens=7, pad_token_id=0, do_sample=False)
    assert seen.verify().exact and seen.missed == ""
    assert bool(short) == (family is llama and (attention == "eager" or not padding))
    for ours, theirs in zip(short, full, strict=True):
        assert isinstance(theirs, ObservedCall)
        for field in dataclasses.fields(ObservedCall):
            mine, other = (getattr(call, field.name) for call in (ours, theirs))
            assert same(mine, other), field.name
