"""``course_numbers``: everything that the course says about one real decoder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clearhead.checkpoints.load import Loaded
from clearhead.explain.course.evidence import evidence
from clearhead.explain.course.next_token import next_token
from clearhead.explain.course.prediction import prediction
from clearhead.explain.course.pronoun import pronoun
from clearhead.explain.course.token_way import token_way
from clearhead.explain.roles.roles import Roles

OPENED = "Students opened their"
CAPITAL = "The capital of France is"
SCARED = (
    "The kids were scared of the lions, so they left right away.",
    "The lions were scared of the kids, so they left right away.",
)


def course_numbers(loaded: Loaded, roles: Roles | None = None) -> dict[str, Any]:
    """The numbers of SmolLM2 for the chapters 10 and 13 to 16; ``roles`` are those of the model."""
    parts: dict[str, Callable[[], dict[str, Any]]] = {
        "next_token": lambda: next_token(loaded, OPENED),
        "pronoun": lambda: pronoun(loaded, SCARED, "they", ("kids", "lions"), "L16H5"),
        "prediction": lambda: prediction(loaded, CAPITAL, " Paris", " London"),
        "token_way": lambda: token_way(loaded, CAPITAL),
    }
    found: dict[str, Any] = {"model": loaded.name} | {name: make() for name, make in parts.items()}
    return found if roles is None else found | {"evidence": evidence(roles)}
