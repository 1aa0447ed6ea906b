"""Events and how they print."""

from __future__ import annotations

from dataclasses import fields

from clearhead.generation.event import Alternative, Event


def test_repr_shows_what_differs_from_the_defaults() -> None:
    assert repr(Event("a")) == "Event('a')"
    other = Alternative(3, "b", 0.5)
    event = Event("a", 2, 0.25, (other,), 5, 7, "context")
    shown = repr(event)
    assert all(f"{field.name}=" in shown for field in fields(Event)[1:])
    assert eval(shown) == event
