"""The lens: each layer's state through the output head, against a model cut off behind it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import nn

import clearhead as ch
from clearhead.explain.lens import lens_of
from clearhead.text.characters import CharacterTokenizer
from clearhead.trace.passage import passage_of
from tests.shared.explained_models import random_decoder
from tests.shared.tiny_models import Tiny

pytestmark = pytest.mark.usefixtures("one_thread")
LETTERS = CharacterTokenizer("".join(map(chr, range(33, 33 + 90))))


@pytest.mark.parametrize("name", ["llama", "gpt2", "gemma3", "bert-masked"])
def test_a_layer_is_read_as_if_the_model_ended_there(
    name: str, tiny: Callable[[str], Tiny]
) -> None:
    loaded = replace(tiny(name).loaded, tokenizer=LETTERS)
    assert isinstance(loaded.model, ch.Decoder | ch.Encoder)
    passage = passage_of(LETTERS, "abcdefg")
    lens = lens_of(loaded, passage)
    ids = torch.tensor([[token.id for token in passage.tokens]])
    blocks = loaded.model.stack.blocks
    try:
        for layer in range(len(blocks)):
            loaded.model.stack.blocks = nn.ModuleList(blocks[: layer + 1])
            with torch.no_grad():
                logits = loaded.model(ids)[0, list(lens.positions), : LETTERS.size]
            shares = logits.double().softmax(-1)
            assert lens.ids[layer].tolist() == shares.argmax(-1).tolist()
            assert lens.probabilities[layer] == pytest.approx(
                shares.max(-1).values.numpy(), rel=1e-3
            )
    finally:
        loaded.model.stack.blocks = blocks
    for column, layer in enumerate(lens.appears):
        answer = lens.ids[-1, column]
        assert (lens.ids[layer:, column] == answer).all()
        assert layer == 0 or lens.ids[layer - 1, column] != answer
        first = lens.first[column]
        assert lens.ids[first, column] == answer and answer not in lens.ids[:first, column]


def test_a_look_has_a_lens() -> None:
    lens = ch.look("dates", "3rd of March 2021").lens().insight
    assert len(lens.ids) == 1 and lens.appears == (0,) * len(lens.positions)
    assert "Lens(1 layers" in repr(lens)


def test_the_lens_of_some_words() -> None:
    loaded = replace(random_decoder(vocab=LETTERS.size), tokenizer=LETTERS)
    passage = passage_of(LETTERS, "a!b!c!d")
    whole, part = lens_of(loaded, passage), lens_of(loaded, passage, words=range(2, 5))
    assert part.marks == whole.marks[2:5] and (part.ids == whole.ids[:, 2:5]).all()
    assert part.final == pytest.approx(whole.final[:, 2:5])
