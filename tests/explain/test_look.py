from __future__ import annotations

import numpy as np
import pytest
import torch

import clearhead as ch
from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.explain.look import Look
from clearhead.explain.make_look import make_look
from clearhead.explain.pictures import HEADLINE, Aids
from clearhead.trace.seen import Seen
from tests.shared.explain_models import decoder, translator

TEXT = "the naïve students opened their books"
SENTENCE = "The kids were scared of the lions, so they left right away."


@pytest.fixture(scope="module")
def look() -> Look:
    return make_look(decoder(), TEXT)


def test_a_head_is_what_the_trace_says(look: Look) -> None:
    picture = look.head("L1H2")
    words = look.seen["L1H2"].words()
    assert [mark.text for mark in picture.rows] == [word.text for word in words.rows]
    assert np.abs(picture.weights - words.weights.numpy()).max() <= 5.1e-5
    assert picture.weights.sum(axis=1) == pytest.approx(np.ones(6), abs=1e-3)
    assert picture.hidden == (0,)
    assert picture.hidden_mass == pytest.approx(picture.weights[:, 0], abs=1e-4)
    assert picture.visible.tolist() == np.tri(6, dtype=bool).tolist()
    assert picture.causal and picture.kind == "self"
    assert picture.notes[-1] == HEADLINE


def test_heads_put_together_say_so(look: Look) -> None:
    one = np.stack([look.head(f"L1H{head}").weights for head in range(4)])
    assert look.head("L1").head == "max of L1"
    assert np.allclose(look.head("L1").weights, one.max(axis=0))
    mean = look.with_aids(pool="mean")
    assert mean.head("L1").head == "mean of L1"
    assert np.allclose(mean.head("L1").weights, one.mean(axis=0), atol=1e-4)
    assert mean.head("all").head == "mean of all 8 heads"
    assert "Over all 8 heads: the mean is shown." in mean.head("all").notes


def test_a_word_over_all_heads_names_the_strongest_head(look: Look) -> None:
    picture = look.word("their")
    rows = {f"L{i}H{j}": look.head(f"L{i}H{j}").weights[4] for i in range(2) for j in range(4)}
    assert picture.head is None and picture.row == 4
    for source in picture.sources:
        assert source.weight == pytest.approx(max(row[source.column] for row in rows.values()))
        assert rows[source.head][source.column] == pytest.approx(source.weight)
    weights = [source.weight for source in picture.sources]
    assert weights == sorted(weights, reverse=True)
    assert 0 not in [source.column for source in picture.sources]


def test_a_word_in_one_head_with_what_is_taken_along(look: Look) -> None:
    picture = look.word("their", "L0H1")
    assert picture.head == "L0H1"
    assert np.array_equal(picture.strengths, look.head("L0H1").weights[4])
    assert picture.hidden_mass == pytest.approx(float(picture.strengths[0]), abs=1e-4)
    record = look.seen.records[0]
    assert record.value is not None
    lengths = record.value[0, 0].norm(dim=1)  # head 1 shares key/value head 0
    row = look.seen["L0H1"].row(look.rows[4].tokens[-1])
    taken = (row * lengths / (row * lengths).sum()).tolist()
    source = next(source for source in picture.sources if source.mark.text == "opened")
    expected = sum(taken[token] for token in source.mark.tokens)
    assert len(look.rows[4].tokens) == 1
    assert source.value_weight == pytest.approx(expected, abs=1e-4)


def test_the_measure_can_be_what_is_taken_along(look: Look) -> None:
    picture = look.with_aids(measure="weight·‖v‖").head("L0H1")
    assert picture.weights.sum(axis=1) == pytest.approx(np.ones(6), abs=1e-3)
    assert not np.allclose(picture.weights, look.head("L0H1").weights, atol=1e-3)
    assert "Numbers are weight·‖v‖, each row divided by its sum." in picture.notes


def test_aids_are_stated_and_change_what_is_shown(look: Look) -> None:
    tokens = look.with_aids(words=False, hide="nothing", colour="log")
    assert len(tokens.rows) > len(look.rows)
    assert tokens.hidden == ()
    assert "Colours are logarithmic." in tokens.notes
    assert any(note.startswith("Subwords are merged") for note in look.notes)
    assert "Hidden, with its mass shown: attention to the first token." in look.notes


def test_the_gallery_holds_every_head(look: Look) -> None:
    gallery = look.gallery(size=4)
    assert gallery.maps.shape == (2, 4, 4, 4)
    assert gallery.names[1][2] == "L1H2"
    weights = look.head("L1H2").weights.copy()
    weights[:, 0] = 0  # hidden
    assert float(gallery.maps[1, 2].max()) == pytest.approx(float(weights.max()))
    assert gallery.salience == look.saliences()[1]


def test_a_choice_is_explained(look: Look) -> None:
    assert look.rows[look.chosen_word].text == "their"
    assert look.why.startswith("word and head were chosen by the rule: “their” → “")
    chosen = make_look(decoder(), TEXT, word="books", head="L0H3")
    assert (chosen.rows[chosen.chosen_word].text, chosen.chosen_head) == ("books", "L0H3")
    assert chosen.why.startswith("word and head were chosen: “books”")


def test_one_token_can_be_looked_at() -> None:
    look = make_look(decoder(), "the")
    assert len(look.rows) == 1
    assert look.word().sources == ()
    assert look.word().hidden_mass == 1.0
    assert "no word stands out" in look.why
    assert look.head().weights.tolist() == [[1.0]]
    assert look.gallery().maps.shape == (2, 4, 1, 1)


def test_a_trace_without_tokens_shows_positions() -> None:
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(12, 3, 17, batch_first=True).eval()
    with torch.no_grad(), ch.watch(layer) as seen:
        layer(torch.randn(2, 5, 12))
    look = Look(seen, batch=1)
    assert [mark.text for mark in look.rows] == ["0", "1", "2", "3", "4"]
    assert np.allclose(look.head("L0H2").weights, seen["L0H2"].of(1).weights().numpy(), atol=6e-5)
    assert "Sequence 1 of a batch of 2." in look.notes
    assert look.hidden == ()
    with pytest.raises(InputError, match="needs cross-attention, and this model has none"):
        look.alignment()
    with pytest.raises(InputError, match=r"weight·‖v‖ needs the values"):
        look.with_aids(measure="weight·‖v‖").head("L0H1")


def test_cross_attention_is_an_alignment_of_written_and_source_words() -> None:
    look = make_look(translator(), "their books", source="the students opened the door")
    picture = look.alignment()
    assert picture.kind == "cross" and picture.head.startswith("C")
    assert [mark.text for mark in picture.columns][:5] == [
        "the", "students", "opened", "the", "door",
    ]  # fmt: skip
    assert [mark.text for mark in picture.rows][:2] == ["their", "books"]
    # the query that wrote “their” stood at the start token, row 0
    assert picture.rows[0].tokens[0] == 0
    assert look.source_text == "the students opened the door"
    assert look.head("E0H1").rows == look.axes("E0")[0]
    assert make_look(translator(), "their", source="the door", head="L1H1").alignment().kind == (
        "cross"
    )


def test_nothing_seen_is_said() -> None:
    with pytest.raises(InputError, match="no attention was seen"):
        Look(Seen())


def test_default_aids() -> None:
    assert Aids() == Aids(True, "first and special", "linear", "max", "weight")


@pytest.fixture(scope="module")
def smollm2() -> Loaded:
    return ch.load("smollm2")


@pytest.mark.download
def test_smollm2_says_who_they_are(smollm2: Loaded) -> None:
    look = make_look(smollm2, SENTENCE)
    assert (look.rows[look.chosen_word].text, look.chosen_head) == ("they", "L16H5")
    weights = {source.mark.text: source.weight for source in look.word(head="L16H5").sources}
    assert weights["kids"] == pytest.approx(0.60, abs=0.01)
    assert weights["lions"] == pytest.approx(0.09, abs=0.01)
    assert "“they” → “kids” 0.60 in L16H5" in look.why
    assert look.proof.exact
    assert look.steps().scale_name == "score/8"


@pytest.mark.download
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The lions were scared of the kids, so they left right away.", "“they” → “lions”"),
        ("The teacher thanked the students after they had finished.", "“they” → “students”"),
        ("My sister has a dog, and she loves it.", "“it” → “dog”"),
        ("The cats chased the mice until they were tired.", "“they” → “mice”"),
        ("Students opened their books.", "“books” → “opened”"),
    ],
)
def test_smollm2_on_other_sentences(smollm2: Loaded, text: str, expected: str) -> None:
    assert expected in make_look(smollm2, text).why


@pytest.mark.download
def test_minilm_hides_its_special_tokens() -> None:
    look = make_look(ch.load("minilm"), SENTENCE)
    assert [look.columns[place].text for place in look.hidden] == ["⟨CLS⟩", "⟨SEP⟩"]
    assert "“they” → “kids”" in look.why
