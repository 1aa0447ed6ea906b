from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

from clearhead.explain.worked_examples import worked_example
from clearhead.views.numbers import number_text, query_text, share_text, vector_text, weight_text


def test_numbers_have_two_decimals_unless_they_are_whole() -> None:
    assert number_text(3.0) == "3" and number_text(-1.5) == "−1.50"
    assert weight_text(0.0) == "0.00" and weight_text(0.125) == "0.13"


def test_halves_of_shown_numbers_go_up() -> None:
    """Every number of four decimals, against decimal arithmetic; x.xx50 is the one that differs."""
    for units in range(10_001):
        exact = (Decimal(units) / 10_000).quantize(Decimal("0.01"), ROUND_HALF_UP)
        assert weight_text(units / 10_000) == str(exact)


def test_vectors_are_cut_and_have_no_negative_zero() -> None:
    assert vector_text((1.0, -2.0, 3.0), 4) == "[1 −2 3]"
    assert vector_text((0.5, -0.001, 3.0), 2) == "[0.50 0.00…]"


def test_the_query_of_a_table() -> None:
    assert query_text(worked_example("selfish")[0], "it") == "q of “it” = [2 0 −1]"


def test_tiny_probabilities_keep_their_power_of_ten() -> None:
    assert [share_text(share) for share in (1.0, 0.12345, 0.0001, 0.00009, 3e-8, 0.0)] == [
        "1.0000", "0.1235", "0.0001", "9e-05", "3e-08", "0.0000",
    ]  # fmt: skip
