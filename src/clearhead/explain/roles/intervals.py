"""How certain a share is: Wilson's interval, the exact binomial tail, Holm's correction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

from clearhead.errors import InputError


def wilson_interval(hits: int, cases: int, confidence: float = 0.95) -> tuple[float, float]:
    """The interval of a share (Wilson 1927), which stays within 0 … 1 and is right for few cases.

    >>> [round(side, 3) for side in wilson_interval(8, 10)]
    [0.49, 0.943]
    """
    if not 0 <= hits <= cases or cases == 0:
        raise InputError(f"{hits} of {cases} is no share.")
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    share, spread = hits / cases, z * z / cases
    middle = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(share * (1 - share) / cases + spread / (4 * cases))
    low = 0.0 if hits == 0 else max(0.0, middle - half)
    return low, 1.0 if hits == cases else min(1.0, middle + half)


def binomial_tail(hits: int, cases: int, chance: float) -> float:
    """P(X ≥ hits) of ``cases`` tries that succeed by ``chance``: exact up to rounding.

    >>> round(binomial_tail(3, 3, 0.5), 4)
    0.125
    """
    if hits <= 0 or chance >= 1.0:
        return 1.0
    if chance <= 0.0 or hits > cases:
        return 0.0
    if hits <= cases * chance:  # the near side is the longer one
        return 1.0 - _sum_down(hits - 1, cases, chance)
    term = total = 1.0
    for number in range(hits, cases):
        term *= (cases - number) / (number + 1) * chance / (1.0 - chance)
        total += term
        if term < total * 1e-17:
            break
    return min(1.0, math.exp(_log_chance(hits, cases, chance)) * total)


def _sum_down(hits: int, cases: int, chance: float) -> float:
    term = total = 1.0
    for number in range(hits, 0, -1):
        term *= number / (cases - number + 1) * (1.0 - chance) / chance
        total += term
        if term < total * 1e-17:
            break
    return min(1.0, math.exp(_log_chance(hits, cases, chance)) * total)


def _log_chance(hits: int, cases: int, chance: float) -> float:
    """ln P(X = hits)."""
    ways = math.lgamma(cases + 1) - math.lgamma(hits + 1) - math.lgamma(cases - hits + 1)
    return ways + hits * math.log(chance) + (cases - hits) * math.log1p(-chance)


def holm(chances: Sequence[float], tried: int, level: float = 0.05) -> list[bool]:
    """Which findings hold when ``tried`` were tried (Holm 1979); those not given did not hold.

    All of them together are wrong anywhere with a probability of at most ``level``.

    >>> holm([0.001, 0.04, 0.012], tried=4)
    [True, False, True]
    """
    if tried < len(chances):
        raise InputError(f"{len(chances)} findings came out of {tried} tries.")
    holds = [False] * len(chances)
    for rank, place in enumerate(sorted(range(len(chances)), key=lambda one: chances[one])):
        if chances[place] > level / (tried - rank):
            break
        holds[place] = True
    return holds
