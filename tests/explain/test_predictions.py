"""Predictions at each position, against the model's own logits."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

import clearhead as ch
from clearhead.explain import predictions
from clearhead.explain.predictions import NONE, came_ids, likeliest, predictions_of, readable
from clearhead.text.characters import CharacterTokenizer
from clearhead.trace.passage import Passage, passage_of
from tests.shared.explain_models import translator
from tests.shared.explained_models import random_decoder
from tests.shared.tiny_models import Tiny

pytestmark = pytest.mark.usefixtures("one_thread")
LETTERS = CharacterTokenizer("".join(map(chr, range(33, 33 + 90))))


@pytest.mark.parametrize("name", ["llama", "gemma2", "bert-masked", "bart"])
def test_every_position_against_the_logits(
    name: str, tiny: Callable[[str], Tiny], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(predictions, "ROWS", 3)
    loaded = replace(tiny(name).loaded, tokenizer=LETTERS)
    passage, source = passage_of(LETTERS, "abcdefg"), None
    ids = torch.tensor([[token.id for token in passage.tokens]])
    with torch.no_grad():
        if name == "bart":
            source = passage_of(LETTERS, "hijk")
            read = torch.tensor([[token.id for token in source.tokens]])
            logits = loaded.model(read, ids)[0].double()
        else:
            logits = loaded.model(ids)[0].double()
    logits = logits[:, : LETTERS.size]  # a vocabulary that is padded beyond its tokenizer
    found = predictions_of(loaded, passage, source)
    shares = logits.softmax(-1)
    following = ids[0] if name == "bert-masked" else ids[0, 1:]
    for place, one in enumerate(found.all):
        assert one.likeliest[0].id == int(logits[place].argmax())
        assert one.likeliest[0].probability == pytest.approx(float(shares[place].max()), rel=1e-4)
        assert sum(token.probability for token in one.likeliest) + one.rest == pytest.approx(1)
        if place < len(following):
            assert one.came is not None and one.came.id == following[place]
            share = float(shares[place, following[place]])
            assert one.surprise == pytest.approx(-math.log2(share), rel=1e-3)
            above = int((logits[place] > logits[place, following[place]]).sum())
            assert one.came.rank == above + 1
        else:
            assert one.came is None and one.surprise is None


def test_the_prediction_behind_a_word() -> None:
    look = ch.look("dates", "3rd of March 2021")
    found = look.predictions("2021", top=3)
    assert len(found.likeliest) == 3 and found.came is not None and found.came.text == "-"
    assert found.came.rank == 1 and found.surprise is not None and found.surprise < 0.1
    with pytest.raises(ch.ClearheadError, match="top must be"):
        look.predictions("2021", top=0)
    with pytest.raises(ch.ClearheadError, match="there is no word 'x' here"):
        look.predictions("x")


def test_a_trace_has_no_predictions() -> None:
    loaded = ch.load("dates")
    with ch.watch(loaded.model) as seen:
        list(ch.generate(loaded, "3rd of March 2021", engine=False))
    with pytest.raises(ch.ClearheadError, match="predictions need the model"):
        ch.look(seen).predictions(0)


def test_fewer_tokens_and_others() -> None:
    found = predictions_of(*readable(ch.look("dates", "3rd of March 2021").insight))
    few = found.top(2)
    assert [len(one.likeliest) for one in few.all] == [2] * len(found.all)
    assert few.all[0].likeliest == found.all[0].likeliest[:2]
    assert len(few.all[0].others) == 1 and len(few.all[-1].others) == 2
    with pytest.raises(ch.ClearheadError, match="top must be"):
        found.top(201)


def test_nothing_came_at_a_mask(tiny: Callable[[str], Tiny]) -> None:
    loaded = replace(tiny("bert-masked").loaded, tokenizer=LETTERS)
    tokens = passage_of(LETTERS, "abc").tokens
    masked = Passage("abc", (tokens[0], replace(tokens[1], text="[MASK]", special=True), tokens[2]))
    assert came_ids(loaded, masked) == [tokens[0].id, NONE, tokens[2].id]
    assert predictions_of(loaded, masked).all[1].surprise is None


def test_equal_logits_in_the_order_of_their_ids() -> None:
    logits = torch.zeros(3, 41)
    logits[1, 17] = logits[1, 5] = 2.0
    logits[2, 40] = -1.0
    assert likeliest(logits, 4).tolist() == [[0, 1, 2, 3], [5, 17, 0, 1], [0, 1, 2, 3]]
    assert likeliest(logits, 99)[2].tolist() == list(range(41))


def test_logits_that_are_not_finite_are_refused() -> None:
    bad = random_decoder(vocab=LETTERS.size, tied=False)
    assert isinstance(bad.model, ch.Decoder) and bad.model.head.weight is not None
    bad.model.head.weight.fill_(math.nan)
    look = ch.look(replace(bad, tokenizer=LETTERS), "abc")
    with pytest.raises(ch.ClearheadError, match="NaN or infinite"):
        look.predictions()
    assert look.csv().startswith("what,head")  # what there is, is written


def test_the_surprise_of_an_impossible_token_is_finite() -> None:
    loaded = random_decoder(vocab=LETTERS.size, tied=False)
    assert isinstance(loaded.model, ch.Decoder) and loaded.model.head.weight is not None
    loaded.model.head.weight.mul_(1e4)
    found = ch.look(replace(loaded, tokenizer=LETTERS), "abc").predictions()
    assert found.all[0].came is not None and found.all[0].came.probability == 0.0
    assert found.all[0].surprise is not None and 1000 < found.all[0].surprise < math.inf


def test_of_a_text_that_was_written_until_the_context_was_full() -> None:
    base = translator()
    config = replace(base.config, context=128, eos=())
    torch.manual_seed(5)
    model = ch.EncoderDecoder(config).eval().requires_grad_(False)
    look = ch.look(replace(base, model=model, config=config), "the books")
    (written, _) = look.insight.passages
    assert written is not None
    read = readable(look.insight)[1]
    assert (len(written), len(read)) == (129, 128)
    assert look.json() and look.lens() is not None
