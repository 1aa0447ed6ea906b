"""Rules that decide which scores are enough evidence to name a role.

A role is named only if one half of the corpus finds it and the other half confirms it:

- position (previous, next …) and attention sinks (first, special tokens; the kind "rest"): at
  least 90 % of the strongest keys in both halves (Voita et al. 2019);
- everything else: in both halves the accuracy is at least 10 points above every baseline.

For both, the p-value (the exact binomial tail of *baseline + 10 points*, on the confirming half)
must be significant at 5 % for all pairs of heads and properties together (Holm 1979). The weights
must agree: the targets' share of them is 10 points above that of uniform attention. In both halves
there must be 20 cases, and 5 % of the weight of these cases must be on targets: a head with nearly
all weight on the first token does nothing with the rest.

Of one head, roles whose lift is below 80 % of its best one's are left out: a head that looks at
dates also looks at numbers more often than chance, but that is not a second role.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from clearhead.arguments import real_number, whole_number
from clearhead.explain.roles.intervals import binomial_tail, holm
from clearhead.explain.roles.properties import Kind
from clearhead.explain.roles.scores import CONFIRM, FIND, Score, ScoreTable


@dataclass(frozen=True)
class Rules:
    """The thresholds. See the docstring of the module.

    >>> Rules(least_cases=5).margin
    0.1
    """

    margin: float = 0.10
    positional: float = 0.90
    level: float = 0.05
    least_cases: int = 20
    least_mass: float = 0.05
    beside_best: float = 0.80

    def __post_init__(self) -> None:
        for name in ("margin", "positional", "level", "least_mass", "beside_best"):
            real_number(name, getattr(self, name), least=0, most=1)
        whole_number("least_cases", self.least_cases, least=1)


@dataclass(frozen=True)
class Role:
    """A role of one head with its evidence; quote the numbers of ``confirmed``."""

    head: str
    property: str
    kind: Kind
    found: Score
    confirmed: Score
    p_value: float  # of such a score, if the head were only as good as baseline + margin
    left_out: bool  # True: first and special tokens were left out, as the head uses them as sinks


@dataclass(frozen=True)
class Judgement:
    """All roles, and the number of pairs of head and property that were tested."""

    roles: tuple[Role, ...]
    tried: int


def judge(scores: ScoreTable, rules: Rules) -> Judgement:
    """Return every role that the rules allow to name, strongest evidence first."""
    tried, candidates = 0, []
    for layer, head, number in _pairs(scores):
        cases = [scores.cases(half, layer, head, number) for half in (FIND, CONFIRM)]
        if min(cases) < rules.least_cases:
            continue
        tried += 1
        kind = scores.tally.index.entries[number].kind
        found = scores.score(FIND, layer, head, number)
        if _good(found, kind, rules):
            confirmed = scores.score(CONFIRM, layer, head, number)
            if _good(confirmed, kind, rules):
                bar = min(confirmed.baseline + rules.margin, 1.0)
                p_value = binomial_tail(confirmed.hits, confirmed.cases, bar)
                left_out = bool(scores.variant(layer, head, number))
                candidates.append(
                    Role(found.head, found.property_name, kind, found, confirmed, p_value, left_out)
                )
    holds = holm([role.p_value for role in candidates], max(tried, 1), rules.level)
    roles = _main([role for role, held in zip(candidates, holds, strict=True) if held], rules)
    return Judgement(tuple(sorted(roles, key=_strength)), tried)


def _pairs(scores: ScoreTable) -> Iterator[tuple[int, int, int]]:
    for layer, facts in enumerate(scores.tally.layers):
        for head in range(facts.heads):
            for number in range(len(scores.tally.index.entries)):
                yield layer, head, number


def _good(score: Score, kind: Kind, rules: Rules) -> bool:
    """Return whether a score is good enough on one half."""
    if score.mass < rules.least_mass or score.share < score.at_random + rules.margin:
        return False
    if kind in ("position", "rest"):
        return score.accuracy >= rules.positional
    return score.accuracy >= score.baseline + rules.margin


def _main(roles: list[Role], rules: Rules) -> list[Role]:
    """Remove roles that only follow from a better role of the same head."""
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
    """The sort key: attention sinks last, otherwise by the lift above the baseline."""
    return role.kind == "rest", -role.confirmed.lift, role.head, role.property
