"""Numbers in the cells of a table: plain digits, as people write them."""

from __future__ import annotations

import re

_NUMBER = re.compile(r"0|[1-9][0-9]{0,8}")  # no text has a billion words


def counted(cell: str) -> int | None:
    """Return the whole number in a cell; None if it is something else, or written oddly.

    >>> counted("12"), counted("00"), counted("-1"), counted("9" * 5000)
    (12, None, None, None)
    """
    return int(cell) if _NUMBER.fullmatch(cell) else None
