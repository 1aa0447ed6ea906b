from __future__ import annotations

import numpy as np

from clearhead.explain.pictures import shown_number, shown_numbers


def test_a_shown_number_has_four_decimals() -> None:
    assert shown_number(0.59964999) == 0.5996
    assert shown_number(1 / 3) == 0.3333


def test_many_numbers_are_shown_like_one() -> None:
    numbers = np.array([[0.123456, 0.99999], [0.00004, 0.5]], dtype=np.float32)
    shown = shown_numbers(numbers)
    assert shown.dtype == np.float32
    assert [[round(float(n), 4) for n in row] for row in shown] == [
        [shown_number(float(number)) for number in row] for row in numbers
    ]
