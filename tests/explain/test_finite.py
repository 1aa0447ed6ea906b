from __future__ import annotations

import math

import pytest
import torch

import clearhead as ch
from clearhead.errors import InputError
from clearhead.explain.finite import require_finite, require_finite_record
from clearhead.explain.look import Look
from clearhead.trace.seen import Seen
from tests.shared.made_looks import passage_of, record_of

TEXT = "The kids saw lions."
PARTS = ("query", "key", "logsum", "value")


def seen() -> Seen:
    words = passage_of(TEXT)
    return Seen([record_of("L0", len(words), len(words), causal=True, seed=3)], words)


def test_ordinary_numbers_pass() -> None:
    require_finite_record(seen().records[0])
    require_finite(torch.tensor([-3.0, 5.0]), "L0", "weights")
    require_finite(torch.zeros(0), "L0", "weights")


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, 3e38])
def test_one_odd_number_anywhere_is_refused(part: str, number: float) -> None:
    made = seen()
    getattr(made.records[0], part).flatten()[3] = number
    with pytest.raises(InputError, match=f"L0: its {part} are infinite, NaN or beyond all measure"):
        Look(made)


def test_scores_that_overflow() -> None:
    made = seen()
    made.records[0].query[:] *= 1e20
    made.records[0].key[:] *= 1e20
    with pytest.raises(InputError, match="L0: its scores are infinite"):
        ch.look(made)


def test_a_forged_log_sum_exp_shows_no_wrong_weight() -> None:
    """Rows are computed from their own scores; a proof finds what does not belong to them."""
    right, forged = Look(seen(), word=2, head="L0H1"), seen()
    forged.records[0].logsum[:] -= 1000.0
    look = Look(forged, word=2, head="L0H1")
    assert (look.head().weights == right.head().weights).all()
    assert [row.weight for row in look.steps().rows] == [row.weight for row in right.steps().rows]
    assert not forged.verify().exact


def test_rows_of_no_numbers_are_not_called_exact() -> None:
    made = seen()
    made.records[0].query[0, 0, 2] = math.nan
    row = made["L0H0"].row(2)
    assert row.isnan().any() or not row.any()
    assert not made.verify().exact
