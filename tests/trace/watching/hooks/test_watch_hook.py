"""A model that is copied or saved while it is watched."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch
from torch import nn

import clearhead as ch
from clearhead.trace.watching.hooks.watch_hook import IdleHook, WatchHook
from clearhead.trace.watching.watch import watch
from tests.trace.watching.waiting.test_inbox import llama, steps


def by_pickle(model: nn.Module) -> Any:
    return pickle.loads(pickle.dumps(model))


@pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, by_pickle])
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_a_copy_computes_the_same_and_is_not_watched(copied: Any, attention: str) -> None:
    model = llama(attention)
    plain = steps(model)
    with watch(model) as seen:
        steps(model)
        twin = copied(model)
        rows = seen["L1"].record.query.shape[2]
        again = steps(twin) if twin.model is not model.model else plain
        assert seen["L1"].record.query.shape[2] == rows and len(seen.runs) == 1
    after = steps(twin)
    assert all(torch.equal(a, b) for a, b in zip(plain, again, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(plain, after, strict=True))
    assert seen.verify().exact and seen.missed == ""
    assert not any(module._forward_hooks for module in model.modules())


def test_a_copied_hook_does_nothing() -> None:
    hook = WatchHook(lambda *_: 1 / 0)
    for twin in (copy.deepcopy(hook), by_pickle(hook)):  # type: ignore[arg-type]
        assert isinstance(twin, IdleHook) and twin(1, 2, 3) is None


def test_a_copy_of_our_own_model_stays_on_the_engine() -> None:
    from clearhead.engine.observers import only_observed

    config = ch.ModelConfig(
        kind="decoder", vocab=11, context=13, model=8, layers=1, heads=2, feed_forward=7
    )
    model = ch.Decoder(config)
    with watch(model):
        twin = copy.deepcopy(model)
    assert only_observed(twin)
