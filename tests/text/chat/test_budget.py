from __future__ import annotations

import time

import pytest
from jinja2 import TemplateRuntimeError

from clearhead.text.chat import budget as module
from clearhead.text.chat.budget import Budget, checked_number


def test_units_are_subtracted() -> None:
    budget = Budget(7)
    budget.spend(5)
    assert budget.left == 2
    with pytest.raises(TemplateRuntimeError, match="loops or writes far more"):
        budget.spend(3)


def test_what_is_used_up_stays_used_up() -> None:
    budget = Budget(7)
    for _ in range(2):
        with pytest.raises(TemplateRuntimeError, match="far more"):
            budget.spend(8)
    with pytest.raises(TemplateRuntimeError, match="far more"):
        budget.spend(0)


def test_a_long_conversation_may_cost_more_once() -> None:
    budget = Budget(7, reserve=lambda: 11)
    budget.spend(8)
    assert budget.left == 7 + 11 * module.PER_INPUT - 8
    with pytest.raises(TemplateRuntimeError, match="far more"):
        budget.spend(1000)


def test_the_clock_is_the_second_line(monkeypatch: pytest.MonkeyPatch) -> None:
    budget = Budget()
    budget.spend(module.BETWEEN_LOOKS + 1)
    now = time.thread_time()
    monkeypatch.setattr(time, "thread_time", lambda: now + 2)
    with pytest.raises(TemplateRuntimeError, match="far more"):
        for _ in range(5):
            budget.spend(module.BETWEEN_LOOKS)
    assert budget.left == -1


def test_numbers() -> None:
    assert [checked_number(one) for one in (7, -1.5, True, 2**200)] == [7, -1.5, True, 2**200]
    with pytest.raises(TemplateRuntimeError, match="a number beyond any use"):
        checked_number(2**300)
    with pytest.raises(TemplateRuntimeError, match="it computes a complex"):
        checked_number((-8) ** 0.5)
