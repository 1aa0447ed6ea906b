"""The walk itself finds what it should: raw errors, unnamed arguments, hanging, silence."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
import torch

from clearhead.errors import InputError
from tests.interface import walk
from tests.interface.calls import CALLS, Call
from tests.interface.values import SINGLE
from tests.interface.walk import Case, confined, outcome, same

pytestmark = pytest.mark.usefixtures("unchecked")


def judged(function: Callable[..., Any], value: str, monkeypatch: pytest.MonkeyPatch) -> str:
    made = Call(lambda: function, lambda: {"window": 3})
    monkeypatch.setitem(CALLS, "attention_steps", made)
    return outcome(Case("attention_steps", "window", value, SINGLE[value])).kind


def refuse(message: str) -> Callable[..., Any]:
    def function(window: object) -> None:
        raise InputError(message)

    return function


def test_kinds_of_outcomes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert judged(refuse("window must be 1 or more; got 0."), "0", monkeypatch) == "refused"
    assert judged(refuse("it must be 1 or more; got 0."), "0", monkeypatch) == "unnamed"
    assert judged(lambda window: window + 1, "a string", monkeypatch) == "raw"
    assert judged(lambda window: None, "a string", monkeypatch) == "accepted"
    assert judged(lambda window: int(window) + 1, "a NumPy int", monkeypatch) == "accepted"
    assert judged(lambda window: type(window).__name__, "a NumPy int", monkeypatch) == "different"


def test_a_call_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "SECONDS", 0.05)
    assert judged(lambda window: [None for _ in count()], "0", monkeypatch) == "too slow"


def test_a_call_that_takes_all_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    with confined():
        assert judged(lambda window: torch.ones(2**40), "0", monkeypatch) == "raw"


def test_equal_results() -> None:
    tensor = torch.tensor([1.0, 2.0])
    assert same([tensor, 3], [tensor + 1e-7, 3])
    assert not same(tensor, tensor[:1])
    assert not same((tensor,), (tensor + 1,))
    assert same(tensor, tensor.numpy())
    assert not same("a", "b")
