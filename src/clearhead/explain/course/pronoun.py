"""Who a pronoun is: q and k of one head, and what all heads give to two nouns, for a sentence and
the same with its nouns swapped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import torch

from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.explain.course.packed import packed, rounded
from clearhead.explain.course.tokens import tokenizer_of
from clearhead.explain.make_look import evaluating
from clearhead.text.token import Token
from clearhead.trace.exact import ExactHead
from clearhead.trace.seen import Seen
from clearhead.trace.watching.watch import watch


def pronoun(
    loaded: Loaded, sentences: tuple[str, str], word: str, nouns: tuple[str, str], head: str
) -> dict[str, Any]:
    """One head from the pronoun, exact, in both sentences; and all heads' weights on the nouns."""
    return {
        "head": head,
        "word": word,
        "nouns": list(nouns),
        "sentences": [_sentence(loaded, text, word, nouns, head) for text in sentences],
    }


def _sentence(
    loaded: Loaded, text: str, word: str, nouns: tuple[str, str], head: str
) -> dict[str, Any]:
    tokens = tokenizer_of(loaded).tokens(text)
    words = [token.text.strip() or token.text for token in tokens]
    with watch(loaded, values=True) as seen, evaluating(loaded):
        loaded.model(torch.tensor([[token.id for token in tokens]]), last_only=True)
    row = token_of(text, tokens, word)
    view = seen[head]
    one = ExactHead(view.record, view.batch, view.places[0])
    return {
        "text": text,
        "tokens": words,
        "row": row,
        "width": int(one.query.shape[-1]),
        "scale": one.scale,
        "query": packed(one.query[row]),
        "keys": packed(one.key[: row + 1]),
        "weights": rounded(view.row(row)[: row + 1], 8),
        "heads": {noun: _all_heads(seen, row, token_of(text, tokens, noun)) for noun in nouns},
        "proof": str(seen.verify()),
    }


def token_of(text: str, tokens: Sequence[Token], word: str) -> int:
    """The place of a word's last token: there the model has read the whole word."""
    found = re.search(rf"\b{re.escape(word)}\b", text)
    if found is None:
        raise InputError(f"word: a word of the text is wanted; {word!r} is not in {text!r}.")
    return next(place for place, token in enumerate(tokens) if token.end >= found.end())


def _all_heads(seen: Seen, row: int, column: int) -> list[list[float]]:
    """The weight from one token to another: a row for each layer, a number for each head."""
    return [
        rounded(seen[layer.name].weights(row, column, limit=None).flatten(), 4)
        for layer in seen.layers
    ]
