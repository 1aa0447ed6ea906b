"""Step tables of one's own numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import clearhead as ch
from clearhead.errors import InputError, ShapeError
from clearhead.explain.own_numbers.tables import table_of_keys, table_of_steps

KEYS = [[1, 0, 1], [1, 0, -1], [-1, 1, 0], [-1, 0, 1]]


@pytest.mark.parametrize("kind", [list, np.array, torch.tensor])
def test_keys_and_a_query_as_lists_arrays_or_tensors(kind: Any) -> None:
    table = table_of_keys(kind(KEYS), kind([2, 0, -1]), list("abcd"))
    assert [row.score for row in table.rows] == [1.0, 3.0, -2.0, -3.0]
    assert [row.word for row in table.rows] == list("abcd")
    powers = np.exp([1, 3, -2, -3])
    mix = powers / powers.sum() @ np.array(KEYS)
    assert np.allclose(table.output, mix, atol=1e-15)


@pytest.mark.parametrize("options", [{}, {"causal": True}, {"softcap": 2.0}, {"scale": 0.3}])
def test_every_head_and_query_of_attention_steps(options: dict[str, Any]) -> None:
    query, key = torch.randn(2, 3, 5, 7, dtype=torch.float64)
    value = torch.randn(3, 5, 11, dtype=torch.float64)
    steps = ch.attention_steps(query, key, value, **options)
    for head in range(3):
        for row in range(5):
            table = table_of_steps(steps, list("abcde"), f"H{head}", row)
            assert table.word == "abcde"[row] and table.head == f"H{head}"
            assert table.query == tuple(query[head, row].tolist())
            for column, one in enumerate(table.rows):
                assert one.key == tuple(key[head, column].tolist())
                assert one.value == tuple(value[head, column].tolist())
                assert one.weight == float(steps.weights[head, row, column])
                assert bool(one.masked) == (bool(options.get("causal")) and column > row)
            assert table.output == tuple(steps.output[head, row].tolist())


def test_the_last_query_of_one_head_unless_asked() -> None:
    x = torch.eye(3)
    steps = ch.attention_steps(x[:2], x, x)
    assert table_of_steps(steps).word == "query 1"
    assert table_of_steps(steps, word="query 0").query == (1.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("keys", "query", "words", "said"),
    [
        (KEYS, None, None, "keys need a query"),
        (KEYS, [1, 2], None, "query must be one vector of 3 numbers"),
        ([[1, 2], [3]], [1, 2], None, "keys must be numbers"),
        ([["a"]], [1], None, "keys must be numbers"),
        ([[float("nan")]], [1], None, "keys must be finite"),
        ([], [1], None, "keys must be"),
        (KEYS, [2, 0, -1], ["a"], "one word for each of the 4 keys"),
        (KEYS, [2, 0, -1], "abcd", "words is a list of texts"),
        (object(), [1], None, "keys must be numbers"),
    ],
)
def test_wrong_numbers_are_named(keys: Any, query: Any, words: Any, said: str) -> None:
    with pytest.raises((InputError, ShapeError), match=said):
        table_of_keys(keys, query, words)


@pytest.mark.parametrize(
    ("shape", "head", "word", "said"),
    [
        ((3, 5), "H0", None, "one head and no names"),
        ((2, 3, 5), "H2", None, "the heads are H0 … H1"),
        ((2, 3, 5), "L0H1", None, "the heads are H0 … H1"),
        ((2, 2, 3, 5), None, None, "one row of a batch"),
        ((3, 5), None, 3, "there are queries 0 … 2"),
        ((3, 5), None, "x", "there is none"),
    ],
)
def test_wrong_heads_and_words_are_named(shape: Any, head: Any, word: Any, said: str) -> None:
    x = torch.randn(shape)
    with pytest.raises((InputError, ShapeError), match=said):
        table_of_steps(ch.attention_steps(x, x, x), None, head, word)


def test_a_watched_layer_goes_on_through_its_w_o() -> None:
    layer = ch.MultiHeadAttention(6, 2, key_dim=3, value_dim=5, causal=True)
    with ch.watch(layer, values=True) as seen, torch.no_grad():
        result = layer(torch.randn(1, 7, 6))
    table = ch.steps(seen, "L0H1", 4, model=layer)
    assert table.outputs is not None and table.outputs.projected
    assert np.allclose(table.outputs.result, result[0, 4].tolist(), atol=1e-6)


def test_every_format_of_one_s_own_numbers(tmp_path: Any) -> None:
    table = ch.steps(KEYS, [2, 0, -1], words=["one", "two", "three", "four"])
    for ending in ("html", "svg", "png", "csv", "json", "txt"):
        assert table.save(tmp_path / f"steps.{ending}").stat().st_size > 100
    assert "0.87" in str(table) and "two" in str(table)
