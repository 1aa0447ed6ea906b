"""What a value of a chat template weighs: what it takes to print, compare or copy all of it.

A template holds texts, numbers, lists, tuples, dictionaries, and what Jinja makes for it. Lists
that hold one list many times over are small in memory and endless on paper, so a value is weighed
as a tree: each time that something is held counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from jinja2 import TemplateRuntimeError, Undefined
from jinja2.filters import _GroupTuple  # the only name of what ``groupby`` gives
from markupsafe import Markup

from clearhead.text.chat.budget import FAR_MORE, Budget

NODE = 30  # units for each value, whatever it is
ITEM = 100  # units for an item that a loop or a filter has to make
DEEPEST = 100  # lists in lists
DEEPEST_KEY = 8  # tuples in tuples, as keys
WIDEST_KEY = 64  # entries of such a tuple

VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()))
TEXTS = frozenset({str, Markup})
NUMBERS = frozenset({int, float, bool})
PLAIN = frozenset({*NUMBERS, type(None), range, Undefined})
LISTS = frozenset({list, tuple, _GroupTuple})
SIZED = frozenset({*TEXTS, *LISTS, *VIEWS, dict, range})
ITERATORS: frozenset[type] = frozenset({type(iter([])), type(iter(()))})


def size(text: str) -> int:
    """The bytes of a text in memory, about."""
    return len(text) if text.isascii() else 4 * len(text)


def weigh(value: Any, most: int) -> int:
    """The units of a value as a tree; an error as soon as they are more than ``most``."""
    if type(value) in TEXTS:
        return NODE + size(value)
    total, level = NODE, [value]
    for _ in range(DEEPEST):
        inside: list[Any] = []
        for one in level:
            kind = type(one)
            if kind in TEXTS:
                total += len(one) if one.isascii() else 4 * len(one)
            elif kind is dict or kind in LISTS or kind in VIEWS:
                total += 2 * NODE * len(one)
                if total > most:  # before the list of what is inside grows
                    raise TemplateRuntimeError(FAR_MORE)
                inside.extend(one)
                if kind is dict:
                    inside.extend(one.values())
            elif kind is int:
                total += one.bit_length() >> 3
            elif kind not in PLAIN:
                raise TemplateRuntimeError(f"it reads a {kind.__name__} as if it were data")
        if total > most:
            raise TemplateRuntimeError(FAR_MORE)
        if not inside:
            return total
        level = inside
    raise TemplateRuntimeError(f"it nests values more than {DEEPEST} levels deep")


def look(budget: Budget, value: Any, times: int = 1) -> None:
    """Charge for going through all of a value so many times."""
    budget.spend(times * weigh(value, budget.left))


def loop(budget: Budget, items: Any, cost: int) -> Any:
    """Charge for going over items, ``cost`` units each; return them."""
    kind = type(items)
    if kind in ITERATORS:
        items = list(items)  # ours, made from lists that are paid for
    elif kind not in SIZED:
        if isinstance(items, Undefined):
            return items
        raise TypeError(f"{kind.__name__!r} object is not iterable")
    budget.spend(cost * len(items))
    return items


def made(budget: Budget, items: Iterable[Any]) -> Iterator[Any]:
    """The items of a lazy filter, computed now and paid for; to be gone through once, as before."""
    collected = []
    for item in items:
        budget.spend(ITEM)
        collected.append(item)
    return iter(collected)


def check_key(key: Any, deep: int = 0) -> None:
    """Refuse keys whose hash takes long: tuples of tuples of tuples."""
    if type(key) not in LISTS:
        return
    if deep > DEEPEST_KEY or len(key) > WIDEST_KEY >> deep:
        raise TemplateRuntimeError("it uses a key beyond any use")
    for part in key:
        check_key(part, deep + 1)
