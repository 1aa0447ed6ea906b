"""A step that is read the short way is what its arguments say."""

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
from tests.trace.watching.waiting.test_inbox import llama


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
    monkeypatch.setattr(inbox, "may_pass", lambda: False)  # all of them are looked into
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
