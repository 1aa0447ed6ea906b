"""Planted heads: a small transformer whose weights are set by hand, so that its roles are known.

A method that finds roles must find these and no others. The parts of a state are

    code of the token | position, one-hot | flags: constant, verb, date | code of the token before

and the heads are, of six in each of two layers:

    L0H0  previous token   q = position − 1, k = position; its output is the previous token's code
    L0H1  same token       q = k = code; its own position gets a negative score
    L0H2  every verb       q = constant, k = verb
    L0H3  dates            q = constant, k = date
    L1H0  induction        q = code, k = code of the token before (from L0H0)

All other heads have zero weights: uniform attention.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from clearhead.explain.roles.corpus.sentence import Sentence
from clearhead.layers.multi_head import MultiHeadAttention
from clearhead.models.config import ModelConfig
from clearhead.models.decoder import Decoder
from clearhead.models.encoder import Encoder
from clearhead.text.words import WordTokenizer

CODE, PLACES, FLAGS, HEADS, LAYERS = 64, 72, 3, 6, 2
KEY = CODE + PLACES
WIDTH = CODE + PLACES + FLAGS + CODE
SHARP = 24.0  # the score of a match, before the softmax
PLANTED = {
    "L0H0": "previous token", "L0H1": "same token", "L0H2": "every VERB", "L0H3": "dates",
    "L1H0": "induction",
}  # fmt: skip


@dataclass(frozen=True)
class PlantedModel:
    """A model with its tokenizer, like the result of ``load``."""

    name: str
    model: Decoder | Encoder
    tokenizer: WordTokenizer


def planted_model(sentences: Sequence[Sentence], *, causal: bool = True) -> PlantedModel:
    """Make a decoder or an encoder with planted heads for the words of these sentences."""
    tokenizer = WordTokenizer.from_texts(sentence.text for sentence in sentences)
    config = ModelConfig(
        kind="decoder" if causal else "encoder", head="language" if causal else "none",
        vocab=tokenizer.size, context=PLACES, model=WIDTH, layers=LAYERS, heads=HEADS,
        key_dim=KEY, value_dim=CODE, feed_forward=1, positions="learned",
    )  # fmt: skip
    model = Decoder(config) if causal else Encoder(config)
    model.eval().requires_grad_(False)
    for parameter in model.stack.blocks.parameters():
        parameter.zero_()
    for norm in model.modules():
        if type(norm).__name__ == "RMSNorm":
            norm.weight.fill_(1.0)  # type: ignore[operator]
    _embed(model, tokenizer, sentences)
    attention = [block.attention for block in model.stack.blocks]
    _plant(attention[0], attention[1])  # type: ignore[arg-type]
    return PlantedModel("planted", model, tokenizer)


def _embed(
    model: Decoder | Encoder, tokenizer: WordTokenizer, sentences: Iterable[Sentence]
) -> None:
    generator = torch.Generator().manual_seed(1)
    weight = model.stack.embedding.tokens.weight
    weight.zero_()
    weight[:, :CODE] = torch.randint(2, (len(weight), CODE), generator=generator) * 2.0 - 1.0
    flags = CODE + PLACES
    weight[:, flags] = CODE**0.5
    for word in _words(sentences, "VERB"):
        weight[tokenizer.encode(word)[0], flags + 1] = CODE**0.5
    for word in _dated(sentences):
        weight[tokenizer.encode(word)[0], flags + 2] = CODE**0.5
    places = model.stack.embedding.positions
    assert isinstance(places, nn.Module)
    table = places.weight
    assert isinstance(table, Tensor)
    table.zero_()
    table[:, CODE : CODE + PLACES] = torch.eye(PLACES) * CODE**0.5


def _words(sentences: Iterable[Sentence], pos: str) -> set[str]:
    return {word.text for one in sentences for word in one.words if word.pos == pos}


def _dated(sentences: Iterable[Sentence]) -> set[str]:
    """The words that occur in dates, and nowhere else."""
    inside: set[str] = set()
    outside: set[str] = set()
    for sentence in sentences:
        for word in sentence.words:
            dates = sentence.spans.get("date", ())
            dated = any(start <= word.start and word.end <= end for start, end in dates)
            (inside if dated else outside).add(word.text)
    return inside - outside


def _plant(first: MultiHeadAttention, second: MultiHeadAttention) -> None:
    code, place = torch.eye(CODE), torch.eye(PLACES)
    at_code, at_place = slice(0, CODE), slice(CODE, CODE + PLACES)
    flags, before = CODE + PLACES, slice(WIDTH - CODE, WIDTH)
    match = (SHARP * KEY**0.5) ** 0.5 / CODE**0.5  # states have entries of ±1 or √CODE about
    query, key = _heads(first.query), _heads(first.key)
    # L0H0: the position before the own one; its output is that token's code.
    query[0, CODE:, at_place] = match * place.roll(-1, 0)
    key[0, CODE:, at_place] = match * place
    _heads(first.value)[0, :, at_code] = code
    first.output.weight[before, :CODE] = code
    # L0H1: the same code, not at the own position.
    query[1, :CODE, at_code], key[1, :CODE, at_code] = match * code, match * code
    query[1, CODE:, at_place], key[1, CODE:, at_place] = -match * place, match * place
    # L0H2, L0H3: flags.
    for head, flag in ((2, flags + 1), (3, flags + 2)):
        query[head, 0, flags], key[head, 0, flag] = match, match
    # L1H0: the code of the token before is the own code.
    query, key = _heads(second.query), _heads(second.key)
    query[0, :CODE, at_code], key[0, :CODE, before] = match * code, match * code


def _heads(linear: nn.Linear) -> Tensor:
    """The rows of a projection, head by head."""
    return linear.weight.view(HEADS, -1, linear.in_features)
