from __future__ import annotations

import pytest

from clearhead.errors import CheckpointError
from clearhead.explain.roles.counting import Count
from clearhead.explain.roles.counts.tally import SAMPLES, CountedLayer, Tally
from clearhead.explain.roles.planted import planted_model
from clearhead.explain.roles.property_index import Entry
from clearhead.explain.roles.reader import Reader
from tests.shared.role_models import SOME, counted, same, some_sentences


def test_shares_add_up_to_the_whole() -> None:
    model = Reader(planted_model(some_sentences()))
    whole = counted(Count(model, SOME))
    together = Tally()
    for process in range(3):
        part = counted(Count(model, SOME, share=(process, 3)))
        together.add(part)
    assert same(together, whole)


def small(name: str, heads: int = 3) -> Tally:
    """One property in one layer, with hits of 1, 2 … on both halves."""
    tally = Tally(layers=[CountedLayer("L0", heads, True, "layers.0", 5)])
    tally.index.enter(Entry(name, "words", "content"))
    tally.grow()
    tally.numbers["hits"][:, 0, 0, 0] += range(1, heads + 1)
    tally.count("sentences", 2)
    return tally


def test_growing_keeps_what_was_counted() -> None:
    tally = small("one")
    tally.index.enter(Entry("two", "words", "content"))
    tally.grow()
    assert tally.numbers["hits"].shape == (2, 2, 1, 2, 3)
    assert tally.numbers["hits"][1, 0, 0].tolist() == [[1, 2, 3], [0, 0, 0]]


def test_properties_are_added_by_name() -> None:
    tally = small("one")
    tally.add(small("two"))
    tally.add(small("one"))
    assert tally.numbers["hits"][0, 0, 0].tolist() == [[2, 4, 6], [1, 2, 3]]
    assert tally.totals == {"sentences": 6}
    with pytest.raises(CheckpointError, match="two counts do not belong together"):
        tally.add(small("one", heads=5))


def test_layers_of_another_model() -> None:
    tally = small("one")
    tally.expect([CountedLayer("L0", 3, True, "layers.0", 5)])
    with pytest.raises(CheckpointError, match="kept are of a model with other layers"):
        tally.expect([CountedLayer("L0", 2, True, "layers.0", 5)])


def test_samples_are_the_sentences_with_the_smallest_keys() -> None:
    tally = Tally()
    for sentence in (*some_sentences(), *some_sentences()):
        tally.add_sample("one", sentence)
    kept = sorted(sentence.key for _, _, sentence in tally.samples["one"])
    assert kept == sorted(sentence.key for sentence in some_sentences())[:SAMPLES]
