from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from clearhead.errors import InputError
from clearhead.trace.selection import Axis, is_single
from tests.shared.synthetic import passage

LETTERS = passage("a|b|c|d|e|b|g")


def chosen(axis: Axis, selection: Any) -> list[int]:
    return axis.places(selection).of(torch.arange(axis.length)).tolist()


@pytest.mark.parametrize(
    "selection",
    [
        0, -1, slice(None), slice(2, 5), slice(None, None, 2), slice(5, 1, -2), range(1, 4),
        range(5, 0, -2), [3, 3, 0], [-1, 1], torch.tensor([4, 2]), np.array([1, 6]), (2,),
    ],
)  # fmt: skip
def test_as_numpy_chooses(unchecked: None, selection: Any) -> None:
    indices = list(selection) if isinstance(selection, range | tuple) else selection
    wanted = np.arange(7)[np.asarray(indices) if isinstance(indices, torch.Tensor) else indices]
    assert chosen(Axis("row", 7), selection) == np.atleast_1d(wanted).tolist()


def test_tokens_choose_too() -> None:
    axis = Axis("column", 7, LETTERS)
    assert chosen(axis, "c") == [2]
    assert chosen(axis, ["g", 0]) == [6, 0]


def test_one_position_is_single(unchecked: None) -> None:
    single: tuple[Any, ...] = (3, "c", np.int64(2), torch.tensor(1))
    assert all(is_single(one) for one in single)
    assert not any(is_single(many) for many in (None, [3], slice(1), torch.tensor([1])))


def test_a_map_takes_runs_only() -> None:
    assert Axis("row", 7).run(None) == range(7)
    assert Axis("row", 7).run(slice(2, 5)) == range(2, 5)
    for bad in (slice(None, None, 2), slice(3, 3)):
        with pytest.raises(InputError, match="a map wants consecutive rows, at least one"):
            Axis("row", 7).run(bad)


@pytest.mark.parametrize(
    ("selection", "words"),
    [
        (7, r"row 7 is out of range: there are 7 rows, 0 … 6"),
        (-8, "row -8 is out of range"),
        (True, "a row is chosen by its index or its token's text; True"),
        (1.5, "rows are chosen by index, slice, range, list or token text; float"),
        ([0, None], r"None \(NoneType\) came"),
        ("x", "no row reads 'x'"),
        ("b", "'b' occurs 2 times among the rows: at 1, 5; give one"),
        ("cd", r"'cd' is 2 tokens: 2, 3"),
    ],
)
def test_bad_selections(unchecked: None, selection: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        Axis("row", 7, LETTERS).places(selection)


def test_text_needs_tokens() -> None:
    with pytest.raises(InputError, match="the tokens of this trace are not known"):
        Axis("row", 7).places("a")
