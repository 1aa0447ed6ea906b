"""What is reported of one property and of one head, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from clearhead.explain.roles.examples import Example
from clearhead.explain.roles.intervention import Effect
from clearhead.explain.roles.judging import Role
from clearhead.explain.roles.properties import Kind
from clearhead.explain.roles.scores import Score

Verdict = Literal["scored", "too few cases", "cannot be seen", "never occurs"]


@dataclass(frozen=True)
class PropertyReport:
    """What became of a property: how often it occurs, and how many cases could be scored."""

    name: str
    kind: Kind
    occurs: int  # queries with a target, before any mask
    cases: int  # of these, queries that may see a target and choose
    verdict: Verdict


@dataclass(frozen=True)
class HeadReport:
    """One head: its roles, strongest first, and how often it rests on first or special tokens."""

    name: str
    layer: int
    head: int
    resting: float
    roles: tuple[Role, ...]

    @property
    def role(self) -> Role | None:
        """The role to name it by; None: no role found."""
        return self.roles[0] if self.roles else None


@dataclass(frozen=True)
class HeadEvidence:
    """One head with all that speaks for its roles, and what it is best at if it has none."""

    report: HeadReport
    examples: dict[str, tuple[Example, ...]]  # by property
    effects: tuple[Effect, ...]
    best: tuple[Score, ...]  # on the confirming half, by their lift
