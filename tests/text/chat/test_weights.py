from __future__ import annotations

from typing import Any

import pytest
from jinja2 import TemplateRuntimeError, Undefined
from jinja2.utils import Namespace

from clearhead.text.chat.budget import Budget
from clearhead.text.chat.weights import NODE, check_key, look, loop, made, size, weigh


def test_the_size_of_a_text_is_its_bytes() -> None:
    assert (size("abc"), size("aé")) == (3, 8)


@pytest.mark.parametrize(
    ("value", "units"),
    [
        ("abc", NODE + 3),
        (7, NODE),
        (None, NODE),
        (["abc", 7], NODE + 2 * 2 * NODE + 3),
        ({"a": "bc"}, NODE + 2 * NODE + 3),
        ({"a": 1}.items(), NODE + 2 * NODE + 2 * 2 * NODE + 1),
        (Undefined(), NODE),
        (range(10**9), NODE),
    ],
)
def test_weights(value: Any, units: int) -> None:
    assert weigh(value, 10**6) == units


def doubled(times: int) -> list[Any]:
    value: list[Any] = ["a"]
    for _ in range(times):
        value = [value, value]
    return value


def test_a_list_that_holds_itself_twice_counts_as_a_tree() -> None:
    small = weigh(doubled(5), 10**6)
    assert 1.9 < weigh(doubled(6), 10**6) / small < 2.1
    with pytest.raises(TemplateRuntimeError, match="far more"):
        weigh(doubled(60), 10**6)


def test_values_that_are_nested_deep() -> None:
    value: Any = ()
    for _ in range(100_000):
        value = (value,)
    with pytest.raises(TemplateRuntimeError, match="nests values more than 100 levels"):
        weigh(value, 10**9)


def test_other_objects_are_no_data() -> None:
    with pytest.raises(TemplateRuntimeError, match="reads a Namespace as if it were data"):
        weigh([Namespace()], 10**6)
    with pytest.raises(TemplateRuntimeError, match="reads a bytes"):
        weigh(b"ab", 10**6)


def test_looking_is_charged() -> None:
    budget = Budget(1000)
    look(budget, "abc", 2)
    assert budget.left == 1000 - 2 * (NODE + 3)


def test_loops_are_charged_before_their_first_turn() -> None:
    budget = Budget(1000)
    items = ["a", "b"]
    assert loop(budget, items, 5) is items
    assert loop(budget, iter(items), 5) == items
    assert budget.left == 1000 - 20
    with pytest.raises(TemplateRuntimeError, match="far more"):
        loop(budget, range(10**12), 5)
    with pytest.raises(TypeError, match="'int' object is not iterable"):
        loop(Budget(), 3, 5)


def test_lazy_items_are_made_at_once() -> None:
    budget = Budget(1000)
    items = made(budget, (one for one in "ab"))
    assert budget.left == 1000 - 2 * 100
    assert list(items) == ["a", "b"]
    assert list(items) == []


def test_keys() -> None:
    for usual in ("a", 3, (1, ("a", "b"))):
        check_key(usual)
    key: Any = ()
    for _ in range(20):
        key = (key, key)
    with pytest.raises(TemplateRuntimeError, match="a key beyond any use"):
        check_key(key)
