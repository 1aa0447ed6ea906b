"""Every result has everything that its insight has, spelled out and typed."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any, get_type_hints

import pytest

from clearhead.errors import InputError
from clearhead.explain.difference import make_difference
from clearhead.explain.roles.reports import HeadEvidence
from clearhead.explain.roles.roles import Roles
from clearhead.views.roles.shown import ShownEvidence, ShownRoles
from clearhead.views.shown import (
    Shown,
    ShownDifference,
    ShownGallery,
    ShownHead,
    ShownLook,
    ShownSteps,
    ShownWord,
)
from tests.shared.made_looks import made_look

LOOK = made_look()
SHOWN: list[tuple[object, type[Shown[Any]]]] = [
    (LOOK, ShownLook),
    (LOOK.head(), ShownHead),
    (LOOK.word(), ShownWord),
    (LOOK.gallery(), ShownGallery),
    (LOOK.steps(), ShownSteps),
    (make_difference(LOOK, LOOK), ShownDifference),
    (Roles, ShownRoles),
    (HeadEvidence, ShownEvidence),
]


def public_names(insight: object) -> set[str]:
    """Fields, properties and methods, of an insight or of its class."""
    names = {name for name in dir(insight) if not name.startswith("_")}
    if is_dataclass(insight):
        names |= set(insight.__dataclass_fields__)
    return names


def getter(owner: type, name: str) -> Callable[..., object] | None:
    """The function behind an attribute of a class; None where the class itself has none."""
    found = inspect.getattr_static(owner, name, None)
    found = getattr(found, "fget", None) or getattr(found, "func", None) or found
    return found if inspect.isfunction(found) else None


@pytest.mark.parametrize(("insight", "shown"), SHOWN, ids=lambda one: getattr(one, "__name__", ""))
def test_everything_public_is_there_with_its_type(insight: object, shown: type) -> None:
    names = public_names(insight)
    assert len(names) >= 4
    for name in sorted(names):
        function = getter(shown, name)
        assert function is not None, f"{shown.__name__} lacks {name}"
        hints = get_type_hints(inspect.unwrap(function))
        assert hints["return"] is not Any, f"{shown.__name__}.{name} says Any"
        assert Any not in hints.values(), f"{shown.__name__}.{name} takes Any"


@pytest.mark.parametrize(("insight", "shown"), SHOWN, ids=lambda one: getattr(one, "__name__", ""))
def test_what_an_insight_returns_shows_itself(insight: object, shown: type) -> None:
    insights = {one if isinstance(one, type) else type(one): by for one, by in SHOWN}
    kind = insight if isinstance(insight, type) else type(insight)
    for name in sorted(public_names(insight)):
        function = getter(kind, name)
        found = None if function is None else get_type_hints(inspect.unwrap(function))["return"]
        own = getter(shown, name)
        if found in insights and own is not None:
            assert get_type_hints(inspect.unwrap(own))["return"] is insights[found], name


def test_there_is_no_proxy() -> None:
    for _, shown in SHOWN:
        assert not hasattr(shown, "__getattr__")


def test_the_parts_of_a_look_are_those_of_its_insight() -> None:
    shown = ShownLook(LOOK)
    assert shown.head("L1H4").weights.tolist() == LOOK.head("L1H4").weights.tolist()
    assert shown.word("they", "L1H4").sources == LOOK.word("they", "L1H4").sources
    assert shown.gallery(5).maps.shape == (3, 6, 5, 5)
    assert shown.steps("L1H4", "they").output == LOOK.steps("L1H4", "they").output
    assert shown.map("L1H4", size=7).weights.shape == (7, 7)
    assert shown.saliences() == LOOK.saliences()


def test_other_aids_leave_the_rest_as_it_was(unchecked: None) -> None:
    shown = ShownLook(made_look(word="they", head="L1H4"))
    other = shown.with_aids(hide="nothing").with_aids(colour="log")
    assert (other.aids.hide, other.aids.colour, other.aids.pool) == ("nothing", "log", "max")
    assert (other.chosen_head, other.hidden) == ("L1H4", ())
    with pytest.raises(InputError, match="colour must be one of 'linear', 'log'; got 'red'"):
        shown.with_aids(colour="red")  # type: ignore[arg-type]
