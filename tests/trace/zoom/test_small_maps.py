"""Small maps of all heads: rough at once, exact at the end."""

from __future__ import annotations

import numpy as np
import pytest

from clearhead.trace.zoom.small_maps import SmallMap, _turns, small_maps
from tests.trace.zoom.zoomed import KINDS, made, plain_cells, view_of, visible_of


@pytest.mark.parametrize("kind", KINDS)
def test_every_head_is_exact_in_the_end(kind: str) -> None:
    built = made(kind)
    last: dict[str, SmallMap] = {}
    for one in small_maps([view_of(built)], hidden=[3], size=9):
        before = last.get(one.head)
        assert before is None or one.counted > before.counted
        assert before is None or (one.numbers >= before.numbers).all() or one.counted < 0.5
        last[one.head] = one
    heads = built.weights.shape[1]
    assert list(last) == [f"L0H{head}" for head in range(heads)]
    for head, one in enumerate(last.values()):
        side = 1 << (-(-max(built.weights.shape[2:]) // 9) - 1).bit_length()
        part = slice(head, head + 1)
        wanted = plain_cells(
            built.weights[0].numpy()[part], visible_of(built)[part], side, "max", (3,)
        )
        assert one.counted == 1 and one.numbers.shape == wanted.shape
        assert np.abs(one.numbers.numpy() - wanted).max() < 2e-5


def test_all_heads_come_before_any_comes_again() -> None:
    names = [one.head for one in small_maps([view_of(made("grouped"))], size=9)]
    assert names[:6] == [f"L0H{head}" for head in range(6)]
    assert names[6] == "L0H0"


def test_turns_are_spread_and_double() -> None:
    assert _turns(8) == [[0], [4], [2, 6], [1, 5, 3, 7]]
    assert _turns(1) == [[0]]
