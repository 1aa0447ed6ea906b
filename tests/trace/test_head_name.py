from __future__ import annotations

from typing import Any

import pytest

from clearhead.errors import InputError
from clearhead.trace.head_name import parse_name, pick_heads


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("L16H5", ("L16", 5)),
        ("L16", ("L16", None)),
        ("L03H07", ("L3", 7)),
        ("E3H2:5", ("E3", slice(2, 5))),
        ("C3H:5", ("C3", slice(None, 5))),
        ("L0H1,7", ("L0", [1, 7])),
    ],
)
def test_names_are_parsed(name: str, wanted: tuple[str, Any]) -> None:
    assert parse_name(name) == wanted


@pytest.mark.parametrize("name", ["", "16H5", "L16H", "L16H5x", "l16", "L16 H5", "L1H1,", 16, None])
def test_other_names_are_refused(name: object) -> None:
    with pytest.raises(InputError, match=r"is no name of a head: wanted L16H5"):
        parse_name(name)


def test_heads_are_picked_by_the_models_numbers() -> None:
    kept = (1, 4, 6)
    assert pick_heads("L0", kept, 4) == (4,)
    assert pick_heads("L0", kept, [6, 1]) == (6, 1)
    assert pick_heads("L0", kept, slice(2, None)) == (4, 6)
    assert pick_heads("L0", kept, slice(None, 5)) == (1, 4)


@pytest.mark.parametrize(
    ("kept", "chosen", "words"),
    [
        ((1, 4), 2, "L0H2: heads 1, 4 were kept"),
        ((0, 1, 2), [0, 5], "L0H5: this layer has 3 heads, 0 … 2"),
        ((0, 1, 2), slice(3, 5), "L0: no heads 3:5; this layer has 3 heads"),
        ((0, 1, 2), slice(0, 3, 2), "without steps"),
        ((0, 1, 2), slice(-2, None), "without steps"),
        ((0, 1, 2), [], "an empty list of heads chooses none"),
    ],
)
def test_heads_that_are_not_there(kept: tuple[int, ...], chosen: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        pick_heads("L0", kept, chosen)
