from __future__ import annotations

from dataclasses import replace

from clearhead.explain.pictures import Source, headline_of
from tests.shared.made_looks import made_look


def test_the_strongest_word_that_is_shown_itself_included() -> None:
    picture = made_look().word("they", "L1H4")
    found = headline_of(picture)
    best = picture.sources[0]
    assert (found.source, found.weight, found.head) == (best.mark.text, best.weight, "L1H4")
    own = Source(9, picture.mark, 0.99, None, "L1H4")
    assert headline_of(replace(picture, sources=(own,))).itself


def test_hidden_words_come_first_where_they_have_more() -> None:
    picture = replace(made_look().word("they", "L1H4"), hidden_mass=0.995)
    found = headline_of(picture)
    assert (found.rests, found.hidden) == (0.995, "The")
    assert headline_of(replace(picture, hidden_mass=0.0)).rests is None


def test_a_mean_has_no_head_and_nothing_may_be_shown() -> None:
    look = made_look().with_aids(pool="mean")
    assert headline_of(look.word("they")).head == ""
    assert headline_of(look.with_aids(pool="max").word("they")).head.startswith("L")
    nothing = headline_of(replace(look.word("they"), sources=()))
    assert nothing.source is None and nothing.weight == 0
