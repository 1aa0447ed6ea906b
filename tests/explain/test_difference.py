from __future__ import annotations

import numpy as np
import pytest
import torch

import clearhead as ch
from clearhead.errors import InputError
from clearhead.explain.difference import aligned, make_difference
from clearhead.explain.make_look import make_look
from clearhead.explain.marks import marks_of
from clearhead.explain.pictures import Aids, HeadPicture, Pool
from tests.shared.explain_models import decoder, passage
from tests.shared.made_looks import SENTENCE, made_look


def picture(words: list[str], weights: list[list[float]], head: str = "L0H0") -> HeadPicture:
    marks = marks_of(passage(words), len(words), words=True)
    numbers = np.array(weights, dtype=np.float32)
    return HeadPicture(
        head, "self", True, marks, marks, numbers, np.ones(numbers.shape, dtype=bool), (0,),
        numbers[:, 0], Aids(), (),
    )  # fmt: skip


BEFORE = picture(["So", " kids", " ran"], [[1, 0, 0], [0.5, 0.5, 0], [0.2, 0.7, 0.1]])
AFTER = picture(["So", " cats", " ran"], [[1, 0, 0], [0.5, 0.5, 0], [0.4, 0.2, 0.4]], "L0H1")


def test_words_in_each_others_place_are_aligned() -> None:
    assert aligned(BEFORE.rows, AFTER.rows) == [(0, 0), (1, 1), (2, 2)]


def test_distances_by_hand() -> None:
    found = make_difference(BEFORE, AFTER)
    # ½ (|0.2 − 0.4| + |0.7 − 0.2| + |0.1 − 0.4|) = 0.5 for “ran”, 0 for the others
    assert (found.words[0].before.text, found.words[0].distance) == ("ran", 0.5)
    assert found.heads[0].distance == pytest.approx(0.5 / 3, abs=1e-4)
    strongest = found.changes[0]
    assert (strongest.row.text, strongest.column_text) == ("ran", "kids/cats")
    assert (strongest.before, strongest.after) == (0.7, 0.2)
    assert all(change.column_text != "So" for change in found.changes)  # hidden
    assert (found.before, found.after) == ("L0H0", "L0H1")
    assert found.gone == found.new == ()


def test_words_without_a_partner_count_as_changed() -> None:
    longer = picture(
        ["So", " the", " kids", " ran"],
        [[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0.25, 0.25, 0.5, 0], [0.2, 0.3, 0.4, 0.1]],
    )
    found = make_difference(BEFORE, longer)
    assert found.new == ("the",)
    distances = {word.before.text: word.distance for word in found.words}
    # ran: ½ (0 + |0.7 − 0.4| + 0 + 0.3 on “the”) = 0.3; kids: ½ (0.25 + 0 + 0 + 0.25) = 0.25
    assert distances["ran"] == pytest.approx(0.3, abs=1e-4)
    assert distances["kids"] == pytest.approx(0.25, abs=1e-4)


def test_the_same_look_does_not_differ() -> None:
    look = make_look(decoder(), "the students opened their books")
    found = make_difference(look, make_look(decoder(), "the students opened their books"))
    assert len(found.heads) == 8
    assert max(head.distance for head in found.heads) == 0
    assert found.changes == ()


def test_two_texts_differ_after_the_changed_word_only() -> None:
    before = make_look(decoder(), "the students opened their books")
    after = make_look(decoder(), "the students opened their door")
    found = make_difference(before, after)
    distances = {word.before.text: word.distance for word in found.words}
    assert distances["students"] == 0 and distances["books"] > 0
    assert found.words[0].after.text == "door"


def test_what_cannot_be_compared_is_said() -> None:
    look = make_look(decoder(), "the students")
    with pytest.raises(InputError, match="not a look with a head"):
        make_difference(look, BEFORE)
    with pytest.raises(InputError, match="no word in common"):
        make_difference(BEFORE, picture(["x"], [[1]]))
    with pytest.raises(InputError, match="diff compares looks or heads; got str"):
        make_difference("a", "b")


def test_words_that_only_one_text_has_are_among_the_changes() -> None:
    found = make_difference(made_look(), made_look(SENTENCE.replace("kids", "old cats")))
    texts = {change.column_text for change in found.changes}
    assert "kids (gone)" in texts and "cats (new)" in texts
    gone = next(change for change in found.changes if change.column_text == "kids (gone)")
    assert gone.after == 0 < gone.before
    assert found.pictures is not None and found.pictures[0].head == found.changes[0].head


def test_pooled_pictures_are_compared_as_shares() -> None:
    pools: tuple[Pool, ...] = ("max", "sum")
    for pool in pools:
        before = made_look().with_aids(pool=pool)
        after = made_look(SENTENCE.replace("kids", "cats"), layers=2).with_aids(pool=pool)
        found = make_difference(before.head("all"), after.head("all"))
        assert 0 < found.heads[0].distance <= 1
        assert all(word.distance <= 1 for word in found.words)
        assert any("divided by their sums" in note for note in found.notes)


def test_heads_and_layers_without_a_counterpart_are_counted() -> None:
    found = make_difference(made_look(layers=3), made_look(layers=2))  # models without names
    assert "1 layers have no counterpart of the same name and were left out." in found.notes


def test_heads_of_a_larger_model_are_not_left_out_in_silence() -> None:
    looks = []
    for heads in (2, 5):
        watched = ch.MultiHeadAttention(20, heads)
        with ch.watch(watched) as seen, torch.no_grad():
            watched(torch.randn(1, 7, 20))
        looks.append(make_look(seen))
    found = make_difference(*looks)
    assert "3 heads have no counterpart of the same number and were left out." in found.notes
    assert {head.before for head in found.heads} <= {"L0H0", "L0H1"}


def test_models_of_other_shapes_are_compared_over_all_heads() -> None:
    before, after = made_look(layers=3), made_look(layers=2)
    before.name, after.name = "large", "small"
    found = make_difference(before, after)
    assert [head.before for head in found.heads] == ["mean of all 18 heads"]
    assert found.models == ("large", "small")
    assert any("no counterpart in the other" in note for note in found.notes)
