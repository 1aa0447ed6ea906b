"""Observers learn of every call of their own thread."""

from __future__ import annotations

import threading

import torch
from torch import Tensor

import clearhead as ch
from clearhead.attention.call import Call
from clearhead.attention.observers import OBSERVERS


def test_an_observer_sees_call_and_output() -> None:
    seen: list[tuple[Call, Tensor, Tensor | None]] = []
    states = torch.randn(2, 3, 5, 7)
    OBSERVERS.watching = (lambda *told: seen.append(told),)
    try:
        output = ch.attention(states, states, states, causal=True)
        other = threading.Thread(target=lambda: ch.attention(states, states, states))
        other.start()
        other.join()
    finally:
        OBSERVERS.watching = ()
    ch.attention(states, states, states)
    ((call, found, logsum),) = seen
    assert torch.equal(found, output)
    assert call.query is states
    if logsum is not None:
        scores = (states @ states.mT * 7**-0.5).masked_fill(
            torch.ones(5, 5).triu(1).bool(), -torch.inf
        )
        torch.testing.assert_close(logsum, scores.logsumexp(-1))


def test_observers_leave_in_any_order() -> None:
    first: list[object] = []
    second: list[object] = []
    states = torch.randn(1, 2, 3, 5)
    blocks = [
        OBSERVERS.observed_by(lambda *told: first.append(told)),
        OBSERVERS.observed_by(lambda *told: second.append(told)),
    ]
    for block in blocks:
        block.__enter__()
    blocks[0].__exit__(None, None, None)
    ch.attention(states, states, states)
    blocks[1].__exit__(None, None, None)
    ch.attention(states, states, states)
    assert (len(first), len(second)) == (0, 1) and OBSERVERS.watching == ()
