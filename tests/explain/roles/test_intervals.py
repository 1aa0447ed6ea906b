"""Intervals, tails and corrections, against numbers computed by hand or by scipy's formulas."""

from __future__ import annotations

import math

import pytest

from clearhead.errors import InputError
from clearhead.explain.roles.intervals import binomial_tail, holm, wilson_interval


def test_wilson_interval() -> None:
    low, high = wilson_interval(81, 263)
    assert (round(low, 4), round(high, 4)) == (0.2553, 0.3662)  # Newcombe 1998, table I
    assert wilson_interval(0, 20)[0] == 0.0 and wilson_interval(20, 20)[1] == 1.0
    with pytest.raises(InputError, match="3 of 2 is no share"):
        wilson_interval(3, 2)


@pytest.mark.parametrize(("hits", "cases", "probability"), [(3, 7, 0.3), (0, 7, 0.3), (7, 7, 0.9),
                                                       (13, 40, 0.5), (31, 40, 0.5)])  # fmt: skip
def test_binomial_tail_is_the_sum_of_its_terms(hits: int, cases: int, probability: float) -> None:
    summed = sum(
        math.comb(cases, k) * probability**k * (1 - probability) ** (cases - k)
        for k in range(hits, cases + 1)
    )
    assert binomial_tail(hits, cases, probability) == pytest.approx(summed, rel=1e-10)


def test_binomial_tail_at_the_ends() -> None:
    assert binomial_tail(5, 10, 1.0) == 1.0 and binomial_tail(5, 10, 0.0) == 0.0
    assert 0.0 <= binomial_tail(900_000, 1_000_000, 0.5) < 1e-300
    assert binomial_tail(500_000, 1_000_000, 0.5) == pytest.approx(0.5, abs=1e-3)


def test_holm_counts_what_was_tried() -> None:
    assert holm([0.004], tried=10) == [True]
    assert holm([0.006], tried=10) == [False]
    assert holm([0.004, 0.0054, 0.02], tried=10) == [True, True, False]
    with pytest.raises(InputError, match="2 findings came out of 1 tries"):
        holm([0.1, 0.2], tried=1)
