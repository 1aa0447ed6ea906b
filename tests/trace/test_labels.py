from __future__ import annotations

import pytest
import torch

from clearhead.errors import InputError
from clearhead.trace.labels import PADDING, Labels
from clearhead.trace.passage import Passage
from tests.shared.synthetic import Options, passage, synthetic


def read(labels: tuple[Passage, ...]) -> list[list[str]]:
    return [[token.text for token in passage.tokens] for passage in labels]


def test_rows_and_columns_of_self_attention() -> None:
    record = synthetic(Options(queries=5, keys=5)).record
    rows, columns = Labels([passage("a|b|c|d|e")]).of(record)
    assert read(rows) == read(columns) == [["a", "b", "c", "d", "e"]]
    assert Labels().of(record) == ((), ())


def test_rows_after_a_cache_are_the_last_tokens() -> None:
    record = synthetic(Options(queries=2, keys=5, causal=True)).record
    rows, columns = Labels([passage("a|b|c|d|e")]).of(record)
    assert read(rows) == [["d", "e"]] and len(columns[0]) == 5


def test_one_text_labels_every_beam() -> None:
    record = synthetic(Options(batch=3, queries=2, keys=2)).record
    assert read(Labels([passage("a|b")]).of(record)[0]) == [["a", "b"]] * 3


def test_padding_in_front_is_found_by_the_mask() -> None:
    record = synthetic(Options(batch=2, queries=7, keys=7, padded=True)).record
    _, columns = Labels([passage("a|b|c|d|e|f|g"), passage("p|q|r|s|t")]).of(record)
    assert read(columns)[1] == ["", "", "p", "q", "r", "s", "t"]
    assert columns[1].tokens[:2] == (PADDING, PADDING)


def test_cross_attention_has_the_source_in_its_columns() -> None:
    record = synthetic(Options(queries=2, keys=3, kind="cross", name="C0")).record
    rows, columns = Labels([passage("a|b")], [passage("x|y|z")]).of(record)
    assert (read(rows), read(columns)) == ([["a", "b"]], [["x", "y", "z"]])


def test_texts_that_do_not_fit() -> None:
    record = synthetic(Options(batch=3, queries=2, keys=2)).record
    with pytest.raises(InputError, match="2 texts were given, but L0 saw a batch of 3"):
        Labels([passage("a|b")] * 2).of(record)
    with pytest.raises(InputError, match="the text has 3 tokens, but L0 saw 2 columns"):
        Labels([passage("a|b|c")]).of(record)
    assert torch.is_tensor(record.query)
