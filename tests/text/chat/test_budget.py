from __future__ import annotations

import itertools
from typing import Any

import pytest
from jinja2 import TemplateRuntimeError

from clearhead.text.chat.budget import Budget, check_format


def test_units_are_subtracted() -> None:
    budget = Budget(7)
    budget.spend(5)
    assert budget.left == 2
    with pytest.raises(TemplateRuntimeError, match="loops or writes far more"):
        budget.spend(3)


def test_an_endless_loop_ends() -> None:
    assert Budget(7).loop(iter("abc")) == ["a", "b", "c"]
    with pytest.raises(TemplateRuntimeError, match="far more"):
        Budget(7).loop(itertools.count())


def test_text_costs_its_characters() -> None:
    budget = Budget(7)
    assert budget.text(["ab", 12]) == "ab12"
    assert budget.left == 3


@pytest.mark.parametrize(
    ("name", "values", "cost"),
    [
        ("replace", ["abab", "a", "xyz"], 4 + 2 * 3),
        ("join", [["ab", "c"], "-"], 3 + 1 + 2 * 1),
        ("center", ["ab", 50], 100),
    ],
)
def test_operations_cost_what_they_can_make(name: str, values: list[Any], cost: int) -> None:
    budget = Budget(1000)
    budget.operation(name, values)
    assert 1000 - budget.left == cost


def test_binary_operators() -> None:
    budget = Budget(1000)
    budget.binary("+", "abc", "de")
    assert budget.left == 995
    budget.binary("*", "abc", 5)
    assert budget.left == 980
    budget.binary("*", 7, 5)
    assert budget.left == 980
    with pytest.raises(TemplateRuntimeError, match="a number beyond any use"):
        budget.binary("**", 10, 1000)


def test_wide_fields() -> None:
    check_format("%5d", [7])
    for pattern, values in (("%99999d", []), ("{:{}}", [10_000]), ("%*d", [])):
        with pytest.raises(TemplateRuntimeError, match="wider than any conversation"):
            check_format(pattern, values)
