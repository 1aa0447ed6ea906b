from __future__ import annotations

import pytest
import torch

import clearhead as ch
from clearhead.errors import InputError, ShapeError
from clearhead.explain.step_table import StepTable, step_table


def table_of(width: int, *, causal: bool = False, row: int = 1, words: int = 3) -> StepTable:
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 3, width)
    steps = ch.attention_steps(query, key, value, causal=causal)
    names = [f"w{i}" for i in range(words)]
    return step_table(names, query, key, steps, row=row, query_word="w1", title="a title")


@pytest.mark.parametrize(("width", "name"), [(64, "score/8"), (16, "score/4"), (7, "score/2.65")])
def test_the_scaled_score_is_named_by_its_divisor(width: int, name: str) -> None:
    assert table_of(width).scale_name == name


def test_masked_words_are_marked() -> None:
    table = table_of(5, causal=True)
    assert [row.masked for row in table.rows] == ["", "", "mask"]
    assert table.rows[2].weight == 0.0


def test_words_and_rows_must_fit() -> None:
    with pytest.raises(ShapeError, match="one word for each of the 3 keys is wanted; got 2"):
        table_of(5, words=2)
    with pytest.raises(InputError, match="row 3: there are queries 0 … 2"):
        table_of(5, row=3)
