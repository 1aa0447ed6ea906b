"""The operators of chat templates, charged: comparisons, ``in``, sums, products, ``%``, ``~``."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from string import Formatter
from typing import Any

from jinja2 import TemplateRuntimeError, Undefined
from markupsafe import Markup

from clearhead.text.chat.budget import LONGEST_NUMBER, Budget, checked_number
from clearhead.text.chat.weights import (
    ITERATORS,
    LISTS,
    NODE,
    NUMBERS,
    PLAIN,
    TEXTS,
    VIEWS,
    check_key,
    look,
    loop,
    size,
    weigh,
)

FEW = 10_000  # characters that may be joined before they are paid for
WIDEST_FIELD = 999
_WIDE_FIELD = re.compile(r"\d{4,}|\*")
_DIGIT = re.compile(r"\d")
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "gt": operator.gt,
    "gteq": operator.ge,
    "lt": operator.lt,
    "lteq": operator.le,
}
ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
}


def compare(budget: Budget, sign: str, left: Any, right: Any) -> Any:
    """``left sign right`` for one of Jinja's names of a comparison."""
    if sign == "in":
        return contains(budget, left, right)
    if sign == "notin":
        return not contains(budget, left, right)
    if type(left) in TEXTS and type(right) in TEXTS:
        budget.spend(NODE + (min(len(left), len(right)) >> 2))
    elif type(left) not in PLAIN or type(right) not in PLAIN:
        look(budget, left)
        look(budget, right)
    return COMPARISONS[sign](left, right)


def contains(budget: Budget, item: Any, holder: Any) -> bool:
    """``item in holder``."""
    kind = type(holder)
    if kind in TEXTS:
        if type(item) in TEXTS:
            budget.spend(search_cost(holder, item))
    elif kind is dict or kind in VIEWS:
        _check_member(budget, item, holder)
    elif kind in ITERATORS or kind in LISTS or kind is range:
        weight = NODE if type(item) in PLAIN else weigh(item, budget.left)
        holder = loop(budget, holder, weight)
    elif not isinstance(holder, Undefined):
        raise TypeError(f"argument of type {kind.__name__!r} is not iterable")
    return item in holder


def _check_member(budget: Budget, item: Any, holder: Any) -> None:
    check_key(item)
    if type(holder) in VIEWS:
        look(budget, item)
        look(budget, holder)


def search_cost(text: str, part: str, *, backwards: bool = False) -> int:
    """The cost of finding a part in a text. Some searches try the whole part at every place."""
    longest = len(part) if backwards or len(text) < 2500 else min(len(part), 100)
    return NODE + len(text) * (4 + longest) // 4


def arithmetic(budget: Budget, sign: str, left: Any, right: Any) -> Any:
    """``left sign right`` for numbers, texts and lists."""
    kind, other = type(left), type(right)
    if kind in NUMBERS and other in NUMBERS:
        if sign == "**" or sign == "*":
            _check_product(sign, left, right)
        return checked_number(ARITHMETIC[sign](left, right))
    if sign == "+" and kind in TEXTS and other in TEXTS:
        escaped = 5 if Markup in (kind, other) else 1
        budget.spend(escaped * (size(left) + size(right)))
        return left + right
    if sign == "%" and kind in TEXTS:
        return formatted(budget, left, right)
    if sign == "+" and kind in LISTS and other in LISTS:
        budget.spend(8 * (len(left) + len(right)))
    elif sign == "*" and {kind, other} & {int, bool}:
        many, one = (left, right) if other not in NUMBERS else (right, left)
        _check_repeated(budget, one, many)
    elif not isinstance(left, Undefined) and not isinstance(right, Undefined):
        raise TypeError(f"{sign} does not take {kind.__name__} and {other.__name__}")
    return ARITHMETIC[sign](left, right)


def _check_product(sign: str, left: object, right: object) -> None:
    """Refuse products and powers beyond any use: a few squarings make numbers of gigabytes."""
    if isinstance(left, int) and isinstance(right, int):
        length, other = left.bit_length(), right.bit_length()
        bits = length * abs(right) if sign == "**" else length + other
        if bits > LONGEST_NUMBER + 8:
            raise TemplateRuntimeError("it computes a number beyond any use")


def _check_repeated(budget: Budget, one: Any, many: int) -> None:
    if type(one) in TEXTS:
        budget.spend(size(one) * max(0, many))
    elif type(one) in LISTS:
        budget.spend(8 * len(one) * max(0, many))
    elif not isinstance(one, Undefined):
        raise TypeError(f"a {type(one).__name__} cannot be repeated")


def formatted(budget: Budget, pattern: str, values: Any) -> str:
    """``pattern % values``: each field may hold all of the values, or be as wide as it says."""
    fields = pattern.count("%")
    wide = _DIGIT.search(pattern) is not None
    if (wide and _WIDE_FIELD.search(pattern)) or ("*" in pattern and fields):
        raise TemplateRuntimeError("it formats a field wider than any conversation needs")
    each = 4 * weigh(values, budget.left) + (WIDEST_FIELD if wide else 0)
    budget.spend(4 * size(pattern) + fields * each)
    text = pattern % values
    assert isinstance(text, str)
    return text


def check_format(budget: Budget, pattern: str, values: list[Any]) -> None:
    """Charge for ``pattern.format(values)``; widths must stand in the pattern."""
    each = WIDEST_FIELD + 4 * weigh(values, budget.left)
    budget.spend(20 * size(pattern) + pattern.count("{") * each)
    for _, _, width, _ in Formatter().parse(pattern):
        if width and ("{" in width or _WIDE_FIELD.search(width)):
            raise TemplateRuntimeError("it formats a field wider than any conversation needs")


def text_of(budget: Budget, value: Any) -> Any:
    """A value that is to be written, paid for; ``str`` of it is the text."""
    kind = type(value)
    if kind in TEXTS:
        return value
    if kind not in PLAIN:
        if isinstance(value, Undefined):
            return value
        budget.spend(4 * weigh(value, budget.left))
    return value


def joined(budget: Budget, parts: Iterable[Any]) -> str:
    """The parts as one text, for ``~`` and for the body of macros."""
    pieces = [part if type(part) is str else str(text_of(budget, part)) for part in parts]
    if sum(map(len, pieces)) > FEW:
        budget.spend(sum(map(size, pieces)))
        return "".join(pieces)
    text = "".join(pieces)
    budget.spend(size(text))
    return text
