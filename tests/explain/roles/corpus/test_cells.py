from __future__ import annotations

import pytest

from clearhead.explain.roles.corpus.cells import counted


@pytest.mark.parametrize(("cell", "number"), [("0", 0), ("7", 7), ("999999999", 999_999_999)])
def test_plain_digits(cell: str, number: int) -> None:
    assert counted(cell) == number


@pytest.mark.parametrize(
    "cell", ["", "00", "01", "-1", "+1", " 1", "1\n", "1.5", "1e3", "٣", "²", "9" * 10, "9" * 5000]
)
def test_everything_else(cell: str) -> None:
    assert counted(cell) is None
