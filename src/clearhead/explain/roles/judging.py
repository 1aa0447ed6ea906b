"""Judging: which scores are evidence enough to name a role.

A role is named only if one half of the corpus finds it and the other half confirms it:

- position (previous, next …) and resting (first, special tokens): at least 90 % of the strongest
  keys in both halves (Voita et al. 2019);
- everything else: in both halves the accuracy is at least 10 points above every baseline.

For both, chance (the exact binomial tail of *baseline + 10 points*, on the confirming half) is
ruled out at 5 % for all pairs of heads and properties together (Holm 1979). The weights must agree:
the targets' share of them is 10 points above what evenly spread weights would give them. In both
halves there must be 20 cases, and 5 % of the weight of these cases must be on targets: a head that
gives all but a trace to the first token does nothing with the trace.

Of one head, roles whose lift is below 80 % of its best one's are left out: a head that looks at
dates also looks at numbers more often than chance, but that is not another thing it does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clearhead.explain.roles.intervals import binomial_tail, holm
from clearhead.explain.roles.properties import Kind
from clearhead.explain.roles.scores import CONFIRM, FIND, Score, ScoreBook


@dataclass(frozen=True)
class Rules:
    """The stated thresholds."""

    margin: float = 0.10
    positional: float = 0.90
    level: float = 0.05
    least_cases: int = 20
    least_mass: float = 0.05
    beside_best: float = 0.80


@dataclass(frozen=True)
class Role:
    """A role with its evidence; ``confirmed`` are the numbers to quote."""

    head: str
    property: str
    kind: Kind
    found: Score
    confirmed: Score
    chance: float  # of such a score from a head that is only baseline + margin good
    left_out: bool  # whether the first and special tokens were left out, because it rests on them


@dataclass(frozen=True)
class Judgement:
    """All roles, and how many pairs of head and property were tried for them."""

    roles: tuple[Role, ...]
    tried: int


def judge(book: ScoreBook, rules: Rules) -> Judgement:
    """Every role that the rules allow to name, strongest evidence first."""
    tried, candidates = 0, []
    for layer, head, number in _pairs(book):
        cases = [book.cases(half, layer, head, number) for half in (FIND, CONFIRM)]
        if min(cases) < rules.least_cases:
            continue
        tried += 1
        kind = book.tally.book.entries[number].kind
        found = book.score(FIND, layer, head, number)
        if _good(found, kind, rules):
            confirmed = book.score(CONFIRM, layer, head, number)
            if _good(confirmed, kind, rules):
                bar = min(confirmed.baseline + rules.margin, 1.0)
                chance = binomial_tail(confirmed.hits, confirmed.cases, bar)
                left_out = bool(book.variant(layer, head, number))
                candidates.append(
                    Role(found.head, found.property_name, kind, found, confirmed, chance, left_out)
                )
    holds = holm([role.chance for role in candidates], max(tried, 1), rules.level)
    roles = _main([role for role, held in zip(candidates, holds, strict=True) if held], rules)
    return Judgement(tuple(sorted(roles, key=_strength)), tried)


def _pairs(book: ScoreBook) -> Iterator[tuple[int, int, int]]:
    for layer, facts in enumerate(book.tally.layers):
        for head in range(facts.heads):
            for number in range(len(book.tally.book.entries)):
                yield layer, head, number


def _good(score: Score, kind: Kind, rules: Rules) -> bool:
    """Whether a score is good enough on one half."""
    if score.mass < rules.least_mass or score.share < score.at_random + rules.margin:
        return False
    if kind in ("position", "rest"):
        return score.accuracy >= rules.positional
    return score.accuracy >= score.baseline + rules.margin


def _main(roles: list[Role], rules: Rules) -> list[Role]:
    """Without those that only follow from a better role of the same head."""
    best: dict[str, float] = {}
    for role in roles:
        if role.kind != "rest":
            best[role.head] = max(best.get(role.head, 0.0), role.confirmed.lift)
    return [
        role
        for role in roles
        if role.kind == "rest" or role.confirmed.lift >= rules.beside_best * best[role.head]
    ]


def _strength(role: Role) -> tuple[bool, float, str, str]:
    """Resting heads last; otherwise by how far they are above what is free."""
    return role.kind == "rest", -role.confirmed.lift, role.head, role.property
