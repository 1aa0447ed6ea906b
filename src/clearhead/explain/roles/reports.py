"""Reports about one property and about one head, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from clearhead.explain.roles.effect import Effect
from clearhead.explain.roles.examples import Example
from clearhead.explain.roles.judging import Role
from clearhead.explain.roles.properties import Kind
from clearhead.explain.roles.scores import Score

Verdict = Literal["scored", "too few cases", "cannot be seen", "never occurs"]


@dataclass(frozen=True)
class PropertyReport:
    """One property: how often it occurs, and how many cases could be scored."""

    name: str
    kind: Kind
    occurs: int  # queries with a target, before any mask
    cases: int  # of these, queries that may attend to a target and to another key
    verdict: Verdict


@dataclass(frozen=True)
class HeadReport:
    """One head: its roles, strongest first, and how often it attends to attention sinks."""

    name: str
    layer: int
    head: int
    sink_share: float  # of queries whose strongest key is the first or a special token
    roles: tuple[Role, ...]

    @property
    def role(self) -> Role | None:
        """The role to name it by; None: no role found."""
        return self.roles[0] if self.roles else None


@dataclass(frozen=True)
class HeadEvidence:
    """One head with the evidence for its roles, and its best scores."""

    report: HeadReport
    examples: dict[str, tuple[Example, ...]]  # by property
    effects: tuple[Effect, ...]
    best: tuple[Score, ...]  # on the confirming half, by their lift
