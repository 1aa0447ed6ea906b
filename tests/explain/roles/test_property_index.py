from __future__ import annotations

import pytest

from clearhead.errors import InputError
from clearhead.explain.roles.properties import Property, PropertyFamily
from clearhead.explain.roles.property_index import Entry, PropertyIndex

ONE = Property("one", lambda _: {})
MANY = PropertyFamily("many", lambda _: {}, kind="relation")


def test_numbers_follow_the_first_occurrence() -> None:
    index = PropertyIndex()
    numbers = [index.number(name, owner) for name, owner in
               (("one", ONE), ("a → head", MANY), ("one", ONE), ("b → head", MANY))]  # fmt: skip
    assert numbers == [0, 1, 0, 2]
    assert index.entries[1] == Entry("a → head", "words", "relation")
    assert index.numbers == {"one": 0, "a → head": 1, "b → head": 2}


def test_two_properties_of_one_name_are_refused() -> None:
    index = PropertyIndex()
    index.number("one", ONE)
    with pytest.raises(InputError, match="two properties are called 'one'"):
        index.number("one", Property("one", lambda _: {}, level="tokens"))


def test_an_entry_of_another_index_is_found_or_added() -> None:
    index = PropertyIndex()
    index.number("one", ONE)
    assert index.enter(Entry("one", "words", "content")) == 0
    assert index.enter(Entry("new", "tokens", "position")) == 1


def test_word_kinds_are_numbered() -> None:
    index = PropertyIndex()
    assert [index.word_kind(kind) for kind in ("VERB", "NOUN", "VERB")] == [0, 1, 0]
