"""Predictions at each position, against the model's own logits."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

import clearhead as ch
from clearhead.explain import predictions
from clearhead.explain.predictions import predictions_of
from clearhead.text.characters import CharacterTokenizer
from clearhead.trace.passage import passage_of
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
