from __future__ import annotations

import pytest

from clearhead.explain.roles.intervals import binomial_tail
from clearhead.explain.roles.judging import Role, Rules, _good, _main
from clearhead.explain.roles.properties import Kind
from clearhead.explain.roles.scores import Score
from tests.shared.role_models import planted_roles


def test_evidence_stands_beside_each_role() -> None:
    for role in planted_roles(True).named:
        score = role.confirmed
        low, high = score.interval
        assert low <= score.accuracy <= high
        assert score.cases >= 20 and score.accuracy > score.baseline + 0.1
        assert score.mass > 0.5 and role.p_value < 1e-6
    verb = next(role for role in planted_roles(True).named if role.head == "L0H2").confirmed
    assert verb.accuracy == 1.0


def score(hits: int, cases: int, baseline: float, share: float = 0.5) -> Score:
    return Score("L0H0", "a", cases, hits, share, share, -1, baseline, 0.1, None)


@pytest.mark.parametrize(
    ("given", "kind", "good"),
    [
        (score(50, 100, 0.40), "content", True),  # 10 points above the baseline
        (score(49, 100, 0.40), "content", False),
        (score(89, 100, 0.0), "position", False),  # a position wants 90 %
        (score(90, 100, 0.0), "position", True),
        (score(90, 100, 0.0), "rest", True),
        (score(90, 100, 0.0, share=0.19), "content", False),  # less than at random + 10 points
        (score(90, 100, 0.0, share=0.04), "content", False),  # hardly any weight on targets
    ],
)
def test_thresholds(given: Score, kind: Kind, good: bool) -> None:
    assert _good(given, kind, Rules()) is good


def test_a_role_that_follows_from_a_better_one_is_left_out() -> None:
    def role(head: str, name: str, hits: int, kind: Kind = "content") -> Role:
        return Role(head, name, kind, score(hits, 100, 0.0), score(hits, 100, 0.0), 0.0, False)

    roles = [role("L0H0", "dates", 90), role("L0H0", "numbers", 71), role("L0H0", "names", 80),
             role("L0H1", "numbers", 30), role("L0H0", "first token", 20, "rest")]  # fmt: skip
    kept = [(one.head, one.property) for one in _main(roles, Rules())]
    # lifts above the baseline 0.1: (0.8, 0.61, 0.7) / 0.9; 0.61 is below 80 % of 0.8
    assert kept == [("L0H0", "dates"), ("L0H0", "names"), ("L0H1", "numbers"),
                    ("L0H0", "first token")]  # fmt: skip


def test_p_values_and_the_number_of_tests() -> None:
    found = planted_roles(True)
    heads = sum(layer.heads for layer in found.layers)
    assert 0 < found.judgement.tried <= heads * len(found.tally.index.entries)
    for role in found.named:
        bar = role.confirmed.baseline + 0.10
        tail = binomial_tail(role.confirmed.hits, role.confirmed.cases, bar)
        assert role.p_value == tail <= 0.05 / found.judgement.tried * len(found.named)
