"""Statistics of shares: Wilson's interval, the exact binomial tail, Holm's correction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

from clearhead.errors import InputError


def wilson_interval(hits: int, cases: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the confidence interval of a share (Wilson 1927): inside 0 … 1, right for few cases.

    >>> [round(side, 3) for side in wilson_interval(8, 10)]
    [0.49, 0.943]
    """
    if not 0 <= hits <= cases or cases == 0:
        raise InputError(f"{hits} of {cases} is no share.")
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    share, correction = hits / cases, z * z / cases
    middle = (share + correction / 2) / (1 + correction)
    half = z / (1 + correction) * math.sqrt(share * (1 - share) / cases + correction / (4 * cases))
    low = 0.0 if hits == 0 else max(0.0, middle - half)
    return low, 1.0 if hits == cases else min(1.0, middle + half)


def binomial_tail(hits: int, cases: int, probability: float) -> float:
    """Return P(X ≥ hits) for ``cases`` trials of this success probability, exact up to rounding.

    >>> round(binomial_tail(3, 3, 0.5), 4)
    0.125
    """
    if hits <= 0 or probability >= 1.0:
        return 1.0
    if probability <= 0.0 or hits > cases:
        return 0.0
    if hits <= cases * probability:  # the lower tail is shorter to sum
        return 1.0 - _sum_down(hits - 1, cases, probability)
    term = total = 1.0
    for number in range(hits, cases):
        term *= (cases - number) / (number + 1) * probability / (1.0 - probability)
        total += term
        if term < total * 1e-17:
            break
    return min(1.0, math.exp(_log_probability(hits, cases, probability)) * total)


def _sum_down(hits: int, cases: int, probability: float) -> float:
    term = total = 1.0
    for number in range(hits, 0, -1):
        term *= number / (cases - number + 1) * (1.0 - probability) / probability
        total += term
        if term < total * 1e-17:
            break
    return min(1.0, math.exp(_log_probability(hits, cases, probability)) * total)


def _log_probability(hits: int, cases: int, probability: float) -> float:
    """ln P(X = hits)."""
    ways = math.lgamma(cases + 1) - math.lgamma(hits + 1) - math.lgamma(cases - hits + 1)
    return ways + hits * math.log(probability) + (cases - hits) * math.log1p(-probability)


def holm(p_values: Sequence[float], tried: int, level: float = 0.05) -> list[bool]:
    """Return which findings are significant if ``tried`` hypotheses were tested (Holm 1979).

    Hypotheses without a p-value here count as not significant. The probability that any finding
    is wrong is at most ``level``.

    >>> holm([0.001, 0.04, 0.012], tried=4)
    [True, False, True]
    """
    if tried < len(p_values):
        raise InputError(f"{len(p_values)} findings came out of {tried} tries.")
    holds = [False] * len(p_values)
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda one: p_values[one])):
        if p_values[place] > level / (tried - rank):
            break
        holds[place] = True
    return holds
