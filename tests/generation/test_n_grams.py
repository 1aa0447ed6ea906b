"""Guesses from the text's own past."""

from __future__ import annotations

from clearhead.generation.n_grams import NGrams


def test_what_followed_last_time() -> None:
    past = NGrams([1, 2, 3, 4, 5, 9, 1, 2, 3])
    assert past.guess(3) == [4, 5, 9]
    assert past.guess(1) == [4]


def test_longer_matches_and_later_ones_come_first() -> None:
    assert NGrams([7, 2, 3, 4, 8, 2, 3, 5, 7, 2, 3]).guess(1) == [4]  # 7 2 3, not the later 2 3
    assert NGrams([7, 2, 3, 4, 8, 2, 3, 5, 9, 2, 3]).guess(1) == [5]


def test_a_guess_that_reaches_the_end_goes_round() -> None:
    assert NGrams([1, 2, 1, 2, 1]).guess(5) == [2, 1, 2, 1, 2]
    assert NGrams([4, 4, 4, 4]).guess(3) == [4, 4, 4]


def test_nothing_repeats() -> None:
    for ids in ([], [1], [1, 1], [1, 2, 3, 4, 5]):
        assert NGrams(ids).guess(4) == []


def test_piece_by_piece_is_the_same() -> None:
    ids = [3, 1, 4, 1, 5, 3, 1, 4, 1, 5, 3, 1]
    one_by_one = NGrams()
    for id in ids:
        one_by_one.extend([id])
    assert one_by_one.guess(4) == NGrams(ids).guess(4) == [4, 1, 5, 3]
