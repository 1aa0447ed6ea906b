"""Everything public that can be called, found by walking: names, methods, and what they return.

It begins with ``clearhead.__all__``. Classes are entered with their constructor; classes that a
public function, method, property or field gives back are entered too, with their methods.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
import typing
from collections.abc import Callable, Iterator
from typing import Any

import clearhead as ch
from clearhead.attention.cache import SlidingKVCache
from clearhead.attention.rotary import Rotary
from clearhead.explain.roles.judging import Rules
from clearhead.explain.roles.properties import Property, PropertyFamily
from clearhead.models.presets import preset
from clearhead.text.tokenizer import Tokenizer
from clearhead.trace.cost import Limit
from clearhead.trace.seen import Seen
from clearhead.training.settings import TrainingSettings

# Public by a page of the docs or as the type of an argument, without a name in ``clearhead``.
ALSO = (
    *(Limit, Property, PropertyFamily, Rotary, Rules, SlidingKVCache, TrainingSettings),
    preset,
)
# Reached, but the inside of a result: no page of the docs calls their methods.
INSIDE = frozenset(
    {
        *("AnnotatedWord", "Band", "Block", "Entry", "LayerGroup", "LayerRecord", "Positions"),
        *("PropertyIndex", "RowBias", "RowMask", "RowRules", "SalienceAxes", "Sentence"),
        *("SessionRunner", "Tally", "Tolerance", "GenerationDefaults", "Effects"),
        *("LinearScaling", "Llama3Scaling", "YarnScaling", "FactorScaling"),
    }
)
SPECIAL = ("__getitem__", "__and__", "__or__")
NOT_CALLED = frozenset(
    {
        "HeadSources.__getitem__",  # as a tuple's, with Python's own errors
        "Mask.full", "Mask.reach",  # defaults of fields
        "masks.near_keys",  # for callers that have checked already
        "Property.named", "PropertyFamily.named",  # called with a sentence, by counting
        "Seen.require", "Seen.unknown_layer",  # make errors
        "Session.runner",  # called by generate
        "ScoreTable.cases", "ScoreTable.score", "ScoreTable.variant",  # by place, for views
    }
)  # fmt: skip


@functools.cache
def surface() -> dict[str, Callable[..., Any]]:
    """Each callable that takes arguments, by name; a class stands for its constructor."""
    found: dict[str, Callable[..., Any]] = {}
    waiting: list[tuple[type, bool]] = []
    for name in ch.__all__:
        _enter(name, getattr(ch, name), found, waiting)
    for also in ALSO:
        _enter(also.__name__, also, found, waiting)
    entered: set[type] = set()
    while waiting:
        kind, constructed = waiting.pop(0)
        if constructed:
            found[kind.__name__] = kind
        if kind not in entered and kind.__name__ not in INSIDE:
            entered.add(kind)
            _enter_class(kind, found, waiting)
    return {name: one for name, one in found.items() if name not in NOT_CALLED and parameters(one)}


def parameters(target: Callable[..., Any]) -> list[str]:
    """The arguments of a callable, without ``self``."""
    if target is ch.attention:  # while shapes are checked, only its twin shows them
        target = ch.attention_steps
    names = inspect.signature(target).parameters
    return [name for name in names if name not in ("self", "cls")]


def _enter(
    name: str, one: Any, found: dict[str, Callable[..., Any]], waiting: list[tuple[type, bool]]
) -> None:
    if isinstance(one, type):
        waiting.append((one, not issubclass(one, BaseException)))
    elif inspect.ismodule(one):
        for inner, part in vars(one).items():
            ours = getattr(part, "__module__", "") == one.__name__ and not inner.startswith("_")
            if ours and inspect.isfunction(part):
                _enter(f"{name}.{inner}", part, found, waiting)
            elif ours and isinstance(part, type):
                waiting.append((part, False))
    elif callable(one):
        found[name] = one
        waiting.extend((kind, False) for kind in _returned(one))


def _enter_class(
    kind: type, found: dict[str, Callable[..., Any]], waiting: list[tuple[type, bool]]
) -> None:
    for base in kind.__mro__:
        if not base.__module__.startswith("clearhead"):
            continue
        for name, member in vars(base).items():
            if name.startswith("_") and name not in SPECIAL:
                continue
            function = _function(member)
            if function is None:
                continue
            waiting.extend((returned, False) for returned in _returned(function))
            if not isinstance(member, property | functools.cached_property):
                found.setdefault(f"{base.__name__}.{name}", function)
    if dataclasses.is_dataclass(kind):
        for hint in _hints(kind).values():
            waiting.extend((part, False) for part in _classes(hint))


def _function(member: Any) -> Callable[..., Any] | None:
    if isinstance(member, property):
        return member.fget
    if isinstance(member, functools.cached_property):
        return member.func
    if isinstance(member, classmethod | staticmethod):
        return member.__func__
    return member if inspect.isfunction(member) else None


def _returned(function: Callable[..., Any]) -> Iterator[type]:
    return _classes(_hints(function).get("return"))


def _hints(one: Any) -> dict[str, Any]:
    names: dict[str, Any] = {"Seen": Seen, "Tokenizer": Tokenizer}
    if isinstance(one, type):
        return typing.get_type_hints(one, localns=names)
    # The checks of shapes wrap functions, whose names are then those of another module.
    return typing.get_type_hints(one, vars(sys.modules[one.__module__]), names)


def _classes(hint: Any) -> Iterator[type]:
    """The classes of clearhead in a type hint."""
    for part in (hint, typing.get_origin(hint)):
        if (
            isinstance(part, type)
            and part.__module__.startswith("clearhead")
            and not issubclass(part, BaseException)
        ):
            yield part
    for inner in typing.get_args(hint):
        yield from _classes(inner)
