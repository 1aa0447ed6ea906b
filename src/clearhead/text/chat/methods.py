"""The methods that chat templates may call, each with its price. What is not here is refused."""

# ruff: noqa: ARG001 (a price has the arguments of what it is the price of)
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jinja2.filters import _GroupTuple
from jinja2.runtime import LoopContext, Macro
from jinja2.utils import Cycler
from markupsafe import Markup

from clearhead.text.chat.budget import Budget
from clearhead.text.chat.operators import search_cost
from clearhead.text.chat.weights import ITEM, TEXTS, check_key, look, loop, size, weigh

PIECE = 60  # bytes of a short text
SHORT = 100_000  # characters that may be split before the pieces are counted

Price = Callable[..., None]


def _linear(budget: Budget, text: str, *args: Any, **kwargs: Any) -> None:
    budget.spend(3 * size(text))
    look(budget, [*args, *kwargs.values()])


def _strip(budget: Budget, text: str, chars: str | None = None) -> None:
    budget.spend(size(text) * (1 + (len(chars or "") >> 4)))


def _find(budget: Budget, text: str, part: str, *places: Any) -> None:
    budget.spend(search_cost(text, part))


def _find_last(budget: Budget, text: str, part: str, *places: Any) -> None:
    budget.spend(search_cost(text, part, backwards=True))


def _partition(budget: Budget, text: str, part: str) -> None:
    budget.spend(2 * size(text) + search_cost(text, part, backwards=True))


def _replace(budget: Budget, text: str, old: str, new: str, count: int = -1) -> None:
    budget.spend(2 * search_cost(text, old) + size(text))
    budget.spend(text.count(old) * size(new))


def _split(budget: Budget, text: str, sep: str | None = None, maxsplit: int = -1) -> None:
    if sep is None:
        _pieces(budget, text)
        return
    budget.spend(size(text) + 2 * search_cost(text, sep, backwards=True))
    budget.spend(PIECE * (text.count(sep) + 1) if sep else 0)


def _splitlines(budget: Budget, text: str, keepends: bool = False) -> None:
    _pieces(budget, text)


def _pieces(budget: Budget, text: str) -> None:
    """Split a short text to count its pieces; of a long one every second character may be one."""
    short = len(text) <= SHORT
    budget.spend(3 * size(text))
    pieces = max(len(text.split()), len(text.splitlines())) if short else len(text) // 2
    budget.spend(PIECE * (pieces + 1))


def _padded(budget: Budget, text: str, width: int, fillchar: str = " ") -> None:
    budget.spend(size(text) + max(0, width) * (1 if fillchar.isascii() else 4))


def _tabs(budget: Budget, text: str, tabsize: int = 8) -> None:
    budget.spend(size(text) + text.count("\t") * max(0, tabsize))


def _get(budget: Budget, held: dict[Any, Any], key: Any, default: Any = None) -> None:
    check_key(key)


def _view(budget: Budget, held: dict[Any, Any]) -> None:
    pass


def _copy(budget: Budget, held: Any) -> None:
    budget.spend(ITEM * len(held))


def _item(budget: Budget, held: Any, value: Any, *places: int) -> None:
    loop(budget, held, weigh(value, budget.left))


def _of_markup(price: Price) -> Price:
    """The price of a method of a text that is marked as safe: it escapes its arguments."""

    def doubled(budget: Budget, text: str, *args: Any, **kwargs: Any) -> None:
        look(budget, [text, *args, *kwargs.values()], 6)
        price(budget, str(text), *args, **kwargs)

    return doubled


_LINEAR = """capitalize casefold lower swapcase title upper startswith endswith removeprefix
removesuffix isalnum isalpha isascii isdecimal isdigit isidentifier islower isnumeric isprintable
isspace istitle isupper"""
_TEXT: dict[str, Price] = {
    **dict.fromkeys(_LINEAR.split(), _linear),
    **dict.fromkeys(("strip", "lstrip", "rstrip"), _strip),
    **dict.fromkeys(("find", "index", "count"), _find),
    **dict.fromkeys(("rfind", "rindex"), _find_last),
    **dict.fromkeys(("partition", "rpartition"), _partition),
    **dict.fromkeys(("split", "rsplit"), _split),
    **dict.fromkeys(("center", "ljust", "rjust", "zfill"), _padded),
    "replace": _replace,
    "splitlines": _splitlines,
    "expandtabs": _tabs,
}
_LIST: dict[str, Price] = {"count": _item, "index": _item}
METHODS: dict[type, dict[str, Price]] = {
    str: _TEXT,
    Markup: {name: _of_markup(price) for name, price in _TEXT.items()},
    dict: {"get": _get, "items": _view, "keys": _view, "values": _view, "copy": _copy},
    list: {**_LIST, "copy": _copy},
    tuple: _LIST,
    _GroupTuple: _LIST,
}
PERFORMED = ("join", "format", "format_map")  # by ``sandbox``, which needs more than a price

_LOOP = """index index0 revindex revindex0 first last length depth depth0 previtem nextitem cycle
changed"""
ATTRIBUTES: dict[type, frozenset[str]] = {
    **{kind: frozenset(methods) for kind, methods in METHODS.items()},
    **{kind: frozenset([*METHODS[kind], *PERFORMED]) for kind in TEXTS},
    _GroupTuple: frozenset([*_LIST, "grouper", "list"]),
    LoopContext: frozenset(_LOOP.split()),
    Macro: frozenset(["name", "arguments", "catch_kwargs", "catch_varargs", "caller"]),
    Cycler: frozenset(["next", "reset", "current"]),
}
