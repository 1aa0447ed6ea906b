"""Failures that are known, each with its cause: the list only becomes shorter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.trace.generated.spec import Spec
from tests.trace.generated.trial import Outcome


@dataclass(frozen=True)
class Known:
    """One cause: the simplest attention that has it, and how others with it are recognised."""

    reason: str
    kind: str  # of the failure
    example: Spec
    applies: Callable[[Spec], bool]


KNOWN: list[Known] = []


def known(outcome: Outcome) -> bool:
    """True if a failure has a known cause."""
    return any(one.kind == outcome.kind and one.applies(outcome.spec) for one in KNOWN)
