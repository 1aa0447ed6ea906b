from __future__ import annotations

import pytest

from clearhead.errors import InputError
from clearhead.explain.layer_group import LayerGroup
from clearhead.explain.make_look import make_look
from clearhead.explain.pictures import Aids
from tests.shared.explain_models import decoder, translator

TEXT = "the naïve students opened"


def test_a_group_holds_the_layers_of_a_letter() -> None:
    seen = make_look(translator(), "their books", source="the door").seen
    groups = {letter: LayerGroup.of(seen, letter, 0, True, None) for letter in "LEC"}
    assert groups["L"].layers == ["L0", "L1"] and groups["L"].causal
    assert groups["E"].layers == ["E0"] and not groups["E"].causal
    assert groups["C"].layers == ["C0", "C1"] and groups["C"].kind == "cross"
    assert groups["C"].own is None
    assert groups["C"].columns == groups["E"].columns
    with pytest.raises(InputError, match="X0"):
        LayerGroup.of(seen, "X", 0, True, None)


def test_every_row_is_its_own_column() -> None:
    seen = make_look(decoder(), TEXT).seen
    words = LayerGroup.of(seen, "L", 0, True, None)
    assert [mark.text for mark in words.rows] == ["the", "naïve", "students", "opened"]
    assert words.own == (0, 1, 2, 3)
    assert words.hidden(Aids()) == (0,) and words.hidden(Aids(hide="nothing")) == ()
    assert words.salience_axes.hidden == (0,)


def test_rows_of_tokens_with_columns_of_words() -> None:
    seen = make_look(decoder(), TEXT).seen
    words, tokens = (LayerGroup.of(seen, "L", 0, merged, None) for merged in (True, False))
    mixed = tokens.with_columns_of(words)
    assert mixed.rows == tokens.rows and mixed.columns == words.columns
    assert mixed.own is not None and len(mixed.own) == len(tokens.rows) > len(words.columns)
    for row, column in enumerate(mixed.own):
        assert row in words.columns[column].tokens


def test_a_row_of_cross_attention_is_the_token_that_it_predicted() -> None:
    look = make_look(translator(), "their books", source="the door")
    group = LayerGroup.of(look.seen, "C", 0, True, None)  # what came last is not known here
    assert [mark.text for mark in group.rows][-1] == "⟨next⟩"
    assert group.rows[0].text == "their"
