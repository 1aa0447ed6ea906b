"""The filters and tests of chat templates: Jinja's own, each with its price. Others are refused."""

# ruff: noqa: ARG001 (a price has the arguments of what it is the price of)
from __future__ import annotations

import json
import math
from collections.abc import Callable, Generator
from typing import Any, cast

from jinja2 import TemplateRuntimeError, pass_context
from jinja2.filters import FILTERS as JINJA_FILTERS
from jinja2.runtime import Context
from jinja2.tests import TESTS as JINJA_TESTS
from jinja2.utils import _PassArg  # how Jinja marks functions that want its context

from clearhead.text.chat.budget import Budget, checked_number
from clearhead.text.chat.operators import compare, contains, formatted, search_cost
from clearhead.text.chat.weights import (
    ITEM,
    ITERATORS,
    NODE,
    NUMBERS,
    PLAIN,
    SIZED,
    TEXTS,
    check_key,
    look,
    loop,
    made,
    size,
    weigh,
)

CALL = 100  # units of any filter
WIDEST = 10_000  # characters of an indent, columns of a batch
FINEST = 20  # decimals of ``round``
MOST_INDENT = 16  # spaces of JSON

FILTERS = cast(dict[str, Callable[..., Any]], JINJA_FILTERS)
TESTS = cast(dict[str, Callable[..., Any]], JINJA_TESTS)
Price = Callable[..., Any]


def _text(budget: Budget, value: Any, *args: Any, **kwargs: Any) -> None:
    look(budget, [value, *args, *kwargs.values()], 6)


def _slow_text(budget: Budget, value: Any, *args: Any, **kwargs: Any) -> None:
    look(budget, [value, *args, *kwargs.values()], 30)


def _items(budget: Budget, value: Any, *args: Any, **kwargs: Any) -> Any:
    """Each item is taken once, with all arguments. What has no items is left to Jinja."""
    if type(value) in PLAIN and type(value) is not range:
        return value
    given = [*args, *kwargs.values()]
    names = sum(one.count(".") + one.count(",") for one in given if isinstance(one, str))
    each = ITEM + weigh(given, budget.left) + 2 * ITEM * names  # "a.b.c" is three items
    return loop(budget, value, each)


def _compared(budget: Budget, value: Any, *args: Any, **kwargs: Any) -> Any:
    """Items are compared with each other, about log n times each."""
    items = _items(budget, value, *args, **kwargs)
    if type(items) not in SIZED:
        return items
    weight = weigh(items, budget.left)
    budget.spend(weight * (1 + math.ceil(math.log2(len(items) + 2))))
    return items


def _unique(budget: Budget, value: Any, *args: Any, **kwargs: Any) -> Any:
    items = _compared(budget, value, *args, **kwargs)
    if type(items) in SIZED and not isinstance(items, str):
        for item in items:
            check_key(item)
    return items


def _sum(budget: Budget, value: Any, attribute: Any = None, start: Any = 0) -> Any:
    if type(start) not in NUMBERS:
        raise TemplateRuntimeError("sum adds numbers")
    return _items(budget, value, attribute)


def _join(budget: Budget, value: Any, d: Any = "", attribute: Any = None) -> Any:
    items = _items(budget, value, attribute)
    if type(items) not in SIZED:
        return items
    budget.spend(4 * weigh(items, budget.left) + len(items) * 5 * weigh(d, budget.left))
    return items


def _replace(budget: Budget, s: Any, old: Any, new: Any, count: Any = None) -> None:
    look(budget, [s, old, new], 6)
    text, part = str(s), str(old)
    budget.spend(2 * search_cost(text, part))
    budget.spend(text.count(part) * 5 * size(str(new)))


def _indent(budget: Budget, s: Any, width: Any = 4, first: Any = False, blank: Any = False) -> None:
    if type(s) not in TEXTS:  # Jinja would add a line break to a list, in place
        raise TypeError(f"indent takes a text; {type(s).__name__} came")
    look(budget, s, 6)
    wide = size(width) if isinstance(width, str) else _small(width, WIDEST)
    budget.spend((len(str(s).splitlines()) + 1) * wide)


def _center(budget: Budget, value: Any, width: Any = 80) -> None:
    look(budget, value, 2)
    budget.spend(_small(width, None))


def _batch(budget: Budget, value: Any, linecount: Any, fill_with: Any = None) -> Any:
    budget.spend(ITEM * _small(linecount, WIDEST))
    return _items(budget, value)


def _slice(budget: Budget, value: Any, slices: Any, fill_with: Any = None) -> Any:
    budget.spend(ITEM * _small(slices, WIDEST))
    return _items(budget, value)


def _round(budget: Budget, value: Any, precision: Any = 0, method: Any = "common") -> None:
    if type(precision) in NUMBERS and abs(precision) > FINEST:
        raise TemplateRuntimeError(f"it rounds to {precision} decimals")


def _small(number: Any, most: int | None) -> int:
    """A whole number that says how wide or how often; what is none is left to Jinja."""
    if not isinstance(number, int):
        return 0
    if most is not None and number > most:
        raise TemplateRuntimeError("it formats a field wider than any conversation needs")
    return max(0, int(number))


def _number(budget: Budget, value: Any, *args: Any, **kwargs: Any) -> None:
    """``%`` of a text would format it."""
    if any(type(one) not in NUMBERS for one in (value, *args)):
        raise TypeError("a number is wanted")


@pass_context
def to_json(
    context: Context,
    value: Any,
    indent: int | None = None,
    ensure_ascii: bool = False,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Plain JSON: Jinja's own filter escapes for HTML, which no model was trained on."""
    if indent is not None and not 0 <= indent <= MOST_INDENT:
        raise TemplateRuntimeError(f"it indents JSON by {indent}")
    budget = _budget(context)
    weight = weigh(value, budget.left)
    margins = (indent or 0) * _depth(value) + weigh(separators, budget.left)
    budget.spend(6 * weight + weight // NODE * margins)
    return json.dumps(
        value,
        indent=indent,
        ensure_ascii=ensure_ascii,
        separators=separators,
        sort_keys=sort_keys,
    )


def _depth(value: Any, deep: int = 1) -> int:
    """How deep a value that has been weighed is nested."""
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple):
        return deep
    return max((_depth(one, deep + 1) for one in value), default=deep)


@pass_context
def _format(context: Context, value: Any, *args: Any, **kwargs: Any) -> str:
    budget = _budget(context)
    look(budget, value, 4)
    return formatted(budget, str(value), kwargs or args)


@pass_context
def _trim(context: Context, value: Any, chars: Any = None) -> str:
    if type(value) is str and chars is None:
        _budget(context).spend(size(value))
        return value.strip()
    look(_budget(context), [value, chars], 6)
    return str(FILTERS["trim"](value, chars))


@pass_context
def _int(context: Context, value: Any, default: Any = 0, base: Any = 10) -> Any:
    look(_budget(context), value)
    found = FILTERS["int"](value, default, base)
    return found if found is default else checked_number(found)


@pass_context
def _in(context: Context, value: Any, seq: Any) -> bool:
    return contains(_budget(context), value, seq)


def _budget(context: Context) -> Budget:
    budget = context.environment.budget  # type: ignore[attr-defined]
    assert isinstance(budget, Budget)
    return budget


def priced(function: Callable[..., Any], price: Price) -> Callable[..., Any]:
    """Jinja's filter or test, paid for before it runs.

    ``price`` may return what is to stand for the value: iterators become lists. Lazy results are
    computed at once. Jinja computes nothing that wants its context while a template is compiled.
    """
    wanted = _PassArg.from_obj(function)

    @pass_context
    def run(context: Context, value: Any = None, *args: Any, **kwargs: Any) -> Any:
        budget = _budget(context)
        budget.spend(CALL)
        instead = price(budget, value, *args, **kwargs)
        value = value if instead is None else instead
        first = _FIRST[wanted](context) if wanted is not None else ()
        found = function(*first, value, *args, **kwargs)
        lazy = isinstance(found, Generator | reversed) or type(found) in _LAZY
        return made(budget, found) if lazy else found

    return run


_LAZY: frozenset[type] = ITERATORS | {
    type(reversed([])),
    type(iter({}.items())),
    type(reversed({})),
}
_FIRST: dict[_PassArg, Callable[[Context], tuple[Any, ...]]] = {
    _PassArg.context: lambda context: (context,),
    _PassArg.eval_context: lambda context: (context.eval_ctx,),
    _PassArg.environment: lambda context: (context.environment,),
}


def _comparison(sign: str) -> Callable[..., Any]:
    @pass_context
    def run(context: Context, left: Any, right: Any) -> Any:
        return compare(_budget(context), sign, left, right)

    return run


_PRICES: dict[Price, str] = {
    _text: "capitalize e escape forceescape lower safe string upper",
    _slow_text: "striptags title truncate urlencode wordcount",
    _items: "items list map reject rejectattr reverse select selectattr",
    _compared: "dictsort groupby max min sort",
    _unique: "unique",
    _sum: "sum",
    _join: "join",
    _replace: "replace",
    _indent: "indent",
    _center: "center",
    _batch: "batch",
    _slice: "slice",
    _round: "round",
}
_TEST_PRICES: dict[Price, str] = {
    _text: "lower upper",
    _number: "divisibleby even odd",
}
# Their cost is that of any step: they look at a value's type, its length or its first item.
_FREE = "abs count d default first last length float"
_FREE_TESTS = """boolean callable defined escaped false float integer iterable mapping none number
sameas sequence string true undefined"""
_SIGNS = {
    "eq": "eq equalto ==",
    "ne": "ne !=",
    "gt": "gt greaterthan >",
    "gteq": "ge >=",
    "lt": "lt lessthan <",
    "lteq": "le <=",
}
CHARGED_FILTERS: dict[str, Callable[..., Any]] = {
    **{n: priced(FILTERS[n], price) for price, names in _PRICES.items() for n in names.split()},
    **{name: FILTERS[name] for name in _FREE.split()},
    "trim": _trim,
    "format": _format,
    "int": _int,
    "tojson": to_json,
}
CHARGED_TESTS: dict[str, Callable[..., Any]] = {
    **{n: priced(TESTS[n], price) for price, names in _TEST_PRICES.items() for n in names.split()},
    **{name: TESTS[name] for name in _FREE_TESTS.split()},
    **{name: _comparison(sign) for sign, names in _SIGNS.items() for name in names.split()},
    "in": _in,
}
