from __future__ import annotations

import pytest

from clearhead.errors import InputError
from tests.shared.planted_roles import shown


def test_the_terminal_fits_eighty_columns() -> None:
    lines = str(shown()).splitlines()
    assert max(map(len, lines)) <= 80
    assert any("accuracy  95 % interval  baseline  cases  weight" in line for line in lines)
    assert "Attention shows where a head looks" in str(shown())


def test_one_head_shows_its_examples_in_their_sentences() -> None:
    text = str(shown().head("L0H0"))
    assert "L0H0: previous token" in text and " 1.00] «" in text
    assert "L1H5: no role found" in str(shown().head("L1H5"))
    with pytest.raises(InputError, match=r"L9H0: no such head was counted; they are L0H0 … L1H5"):
        shown().head("L9H0")
