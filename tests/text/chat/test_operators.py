from __future__ import annotations

from typing import Any

import pytest
from jinja2 import TemplateRuntimeError
from markupsafe import Markup

from clearhead.text.chat.budget import Budget
from clearhead.text.chat.operators import (
    ARITHMETIC,
    arithmetic,
    check_format,
    compare,
    contains,
    formatted,
    joined,
    search_cost,
    text_of,
)
from tests.text.chat.test_weights import doubled

VALUES: list[Any] = [
    3,
    -2.5,
    True,
    None,
    "ab",
    "é",
    Markup("<b>"),
    [1, "a"],
    ("a",),
    {"a": 1},
    [],
    "",
]


@pytest.mark.parametrize("sign", ["eq", "ne", "lt", "lteq", "gt", "gteq", "in", "notin"])
def test_comparisons_are_those_of_python(sign: str) -> None:
    code = {"lt": "<", "lteq": "<=", "gt": ">", "gteq": ">=", "eq": "==", "ne": "!=", "in": "in",
            "notin": "not in"}[sign]  # fmt: skip
    for left in VALUES:
        for right in VALUES:
            try:
                expected = eval(f"left {code} right", {"left": left, "right": right})
            except TypeError:
                with pytest.raises(TypeError):
                    compare(Budget(), sign, left, right)
            else:
                assert compare(Budget(), sign, left, right) == expected


@pytest.mark.parametrize("sign", list(ARITHMETIC))
def test_arithmetic_is_that_of_python(sign: str) -> None:
    for left in VALUES:
        for right in VALUES:
            try:
                expected = ARITHMETIC[sign](left, right)
            except (TypeError, ValueError, ZeroDivisionError) as error:
                with pytest.raises(type(error)):
                    arithmetic(Budget(), sign, left, right)
            else:
                if isinstance(expected, complex):
                    continue
                found = arithmetic(Budget(), sign, left, right)
                assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize("sign", ["eq", "lt", "in"])
def test_what_is_endless_on_paper_is_not_compared(sign: str) -> None:
    with pytest.raises(TemplateRuntimeError, match="far more"):
        compare(Budget(), sign, doubled(60), [doubled(60)])


def test_an_iterator_is_searched_once() -> None:
    items = iter(["a", "b"])
    assert contains(Budget(), "b", items)
    assert not contains(Budget(), "b", items)


def test_searches_that_try_the_whole_part_at_every_place_cost_more() -> None:
    text, part = "a" * 5000, "a" * 1000
    assert search_cost(text, part, backwards=True) > 5 * search_cost(text, part)
    assert search_cost(text, "ab") < 2 * len(text)


@pytest.mark.parametrize(
    ("sign", "left", "right"),
    [("*", "abc", 10**9), ("*", 10**9, [1]), ("+", "a" * 20_000_000, "b" * 20_000_000)],
)
def test_results_that_are_too_large(sign: str, left: Any, right: Any) -> None:
    with pytest.raises(TemplateRuntimeError, match="far more"):
        arithmetic(Budget(), sign, left, right)


@pytest.mark.parametrize(
    ("sign", "left", "right"), [("**", 10, 1000), ("*", 2**200, 2**200), ("+", 2**256, 2**256)]
)
def test_numbers_that_are_too_large(sign: str, left: int, right: int) -> None:
    with pytest.raises(TemplateRuntimeError, match="a number beyond any use"):
        arithmetic(Budget(), sign, left, right)


def test_formats() -> None:
    assert formatted(Budget(), "%s-%02d", ("a", 3)) == "a-03"
    check_format(Budget(), "{:>5} {}", [1, 2])
    for pattern in ("%99999d", "%*d"):
        with pytest.raises(TemplateRuntimeError, match="wider than any conversation"):
            formatted(Budget(), pattern, (1, 1))
    for pattern in ("{:9999}", "{:{w}}"):
        with pytest.raises(TemplateRuntimeError, match="wider than any conversation"):
            check_format(Budget(), pattern, [1, "9"])
    for pattern in ("%999d" * 99_999, "%(a)s" * 99_999):
        with pytest.raises(TemplateRuntimeError, match="far more"):
            formatted(Budget(), pattern, {"a": "x" * 999})


def test_what_is_written_is_paid_for() -> None:
    budget = Budget(1000)
    assert text_of(budget, "ab") == "ab"
    assert budget.left == 1000
    assert text_of(budget, [1]) == [1]
    assert budget.left < 1000
    with pytest.raises(TemplateRuntimeError, match="far more"):
        text_of(Budget(), doubled(60))


def test_text_costs_its_bytes() -> None:
    budget = Budget(100)
    assert joined(budget, ["ab", 12]) == "ab12"
    assert budget.left == 96
    with pytest.raises(TemplateRuntimeError, match="far more"):
        joined(Budget(100), ["a" * 6000, "b" * 6000])
