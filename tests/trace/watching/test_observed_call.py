from __future__ import annotations

from typing import Any

import torch
from torch import nn

from clearhead.attention import masks
from clearhead.trace.watching.observed_call import Active, ObservedCall, as_added


def call(**options: Any) -> ObservedCall:
    query, key = torch.zeros(1, 2, 3, 5), torch.zeros(1, 2, 7, 5)
    return ObservedCall(query, key, None, scale=1.0, output=None, **options)


def test_everything_added_to_the_scores_of_some_rows() -> None:
    assert call().sizes == (3, 7) and call().added(range(3)) is None
    bias = torch.arange(7.0).view(1, 1, 1, 7)
    mask = torch.ones(1, 1, 3, 7, dtype=torch.bool).tril(4)
    found = call(bias=bias, mask=mask).added(range(1, 2))
    low = -torch.inf
    assert found is not None and found.tolist() == [[[[0, 1, 2, 3, 4, 5, low]]]]
    ours, torchs = call(rule=masks.causal()), call(from_start=True)
    assert ours.added(range(1, 2)).flatten().tolist() == [0] * 6 + [low]  # type: ignore[union-attr]
    assert torchs.added(range(1, 2)).flatten().tolist() == [0] * 2 + [low] * 5  # type: ignore[union-attr]


def test_numbers_stay_and_booleans_become_numbers() -> None:
    assert as_added(torch.tensor([True, False]), torch.float64).tolist() == [0.0, -torch.inf]
    assert as_added(torch.tensor([1.5]), torch.float64).dtype == torch.float32


class Listener:
    def __init__(self) -> None:
        self.calls: list[ObservedCall] = []
        self.reasons: list[str] = []

    def keep(self, observed: ObservedCall) -> None:
        self.calls.append(observed)

    def refuse(self, reason: str) -> None:
        self.reasons.append(reason)

    def module(self) -> nn.Module | None:
        return None


class Mode:
    entered = 0

    def __enter__(self) -> None:
        self.entered += 1

    def __exit__(self, *_: object) -> None:
        self.entered -= 1


def test_an_outer_door_collects_the_calls() -> None:
    active, listener, observed = Active(), Listener(), call()
    active.watchers = (listener,)
    active.collected = []
    active.notify(observed)
    assert active.collected == [observed] and listener.calls == []
    active.collected = None
    active.notify(observed)
    active.refuse("because")
    assert listener.calls == [observed] and listener.reasons == ["because"]


def test_the_mode_is_entered_once() -> None:
    active, mode = Active(), Mode()
    active.mode = mode
    active.enter_mode()
    active.enter_mode()
    assert mode.entered == 1
    active.leave_mode()
    assert mode.entered == 1
    active.leave_mode()
    assert mode.entered == 0 and active.depth == 0
