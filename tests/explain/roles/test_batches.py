from __future__ import annotations

import pytest
import torch

from clearhead.explain.roles.batches import Batch, batches, padded_width
from clearhead.explain.roles.corpus.recognisers import plain_sentence
from clearhead.explain.roles.prepared import Prepared, prepare
from clearhead.explain.roles.properties import Property
from clearhead.explain.roles.property_index import PropertyIndex
from tests.shared.role_models import cut


def prepared(words: int) -> Prepared:
    """A sentence of so many words, each one token, with one property: the first word."""
    pieces = [f"w{number}" for number in range(words)]
    read = cut(plain_sentence(" ".join(pieces)), *pieces)
    first = Property("first", lambda one: {query: [0] for query in range(1, len(one.units))})
    return prepare(read, [first], PropertyIndex())


@pytest.mark.parametrize(("tokens", "width"), [(1, 8), (7, 8), (8, 16), (15, 16), (16, 24)])
def test_a_sentence_always_has_padding(tokens: int, width: int) -> None:
    assert padded_width(tokens) == width


def test_batches_have_one_width_and_no_more_than_their_tokens() -> None:
    made = list(batches([prepared(words) for words in (11, 3, 5, 13, 2, 7)], tokens=16))
    assert [(batch.width, [len(one.ids) for one in batch.sentences]) for batch in made] == [
        (8, [3, 5]), (8, [2, 7]), (16, [11]), (16, [13]),
    ]  # fmt: skip
    assert len(list(batches([prepared(11)], tokens=1))) == 1  # one sentence is never cut


def test_tensors_of_a_batch() -> None:
    batch = Batch([prepared(3), prepared(5)], 8)
    assert batch.lengths.tolist() == [3, 5]
    assert batch.ids(pad=-1)[0].tolist() == [0, 1, 2, -1, -1, -1, -1, -1]
    assert torch.equal(batch.owners()[0, :3, :3], torch.eye(3))
    assert batch.owners().sum(dim=(1, 2)).tolist() == [3.0, 5.0]
    assert batch.sinks("words").tolist() == [[True] + [False] * 7] * 2  # the first word


def test_targets_of_the_second_half_are_counted_apart() -> None:
    sentences = [prepared(words) for words in range(2, 13)]
    assert {one.half for one in sentences} == {0, 1}
    edges = Batch(sentences, 16).edges("words", 7)
    for half in (0, 1):
        expected = sum(len(one.ids) - 1 for one in sentences if one.half == half)
        assert int((edges.property == 7 * half).sum()) == expected
    assert edges.property.tolist() == sorted(edges.property.tolist())
    assert edges.key.tolist() == [0] * len(edges.key)
