"""Looks at texts that no model read: random q, k and v, and a head that looks where it is told."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from clearhead.explain.generated import GeneratedText
from clearhead.explain.look import Look
from clearhead.explain.pictures import Aids
from clearhead.text.token import Token
from clearhead.text.words import WordTokenizer
from clearhead.trace.passage import Passage
from clearhead.trace.record import LayerFacts, LayerRecord
from clearhead.trace.row_rules import RowMask, RowRules
from clearhead.trace.seen import Seen

SENTENCE = "The kids were scared of the lions, so they left right away."
KEY_DIM, VALUE_DIM = 7, 5
KV_HEADS, GROUP = 2, 3


def passage_of(text: str) -> Passage:
    """One token for each word and mark."""
    spans = WordTokenizer.spans(text)
    return Passage(text, tuple(Token(n, text[a:b], a, b) for n, (a, b) in enumerate(spans)))


def record_of(
    name: str, rows: int, columns: int, *, causal: bool, seed: int, planted: bool = False
) -> LayerRecord:
    """A layer of 2 × 3 heads; ``planted``: head 4 looks eight words back, as far as there are."""
    make = torch.Generator().manual_seed(seed)
    heads = KV_HEADS * GROUP
    query = torch.randn(1, heads, rows, KEY_DIM, generator=make)
    key = torch.randn(1, KV_HEADS, columns, KEY_DIM, generator=make)
    value = torch.randn(1, KV_HEADS, columns, VALUE_DIM, generator=make)
    if planted:
        for row in range(8, rows):
            query[0, 4, row] = 4.0 * key[0, 1, row - 8]
    mask = None
    scores = query @ key.repeat_interleave(GROUP, 1).transpose(2, 3) * 0.5
    if causal:
        mask = RowMask(torch.zeros(1, rows, dtype=torch.long), torch.arange(1, rows + 1)[None])
        scores = scores.masked_fill(torch.ones(rows, columns).triu(1).bool(), -torch.inf)
    kind: Literal["self", "cross"] = "cross" if name.startswith("C") else "self"
    facts = LayerFacts(
        name, f"layers.{name}", kind, causal, heads, KV_HEADS, KEY_DIM, VALUE_DIM, 0.5, None,
        torch.float32, "",
    )  # fmt: skip
    weights: Tensor = torch.softmax(scores, dim=3)
    output = weights @ value.repeat_interleave(GROUP, 1)
    return LayerRecord(
        facts, query, key, scores.logsumexp(dim=3), value=value, output=output,
        pieces=[RowRules(rows, columns, mask)],
    )  # fmt: skip


def made_look(
    text: str = SENTENCE,
    *,
    layers: int = 3,
    aids: Aids | None = None,
    word: int | str | None = None,
    head: str | None = None,
) -> Look:
    """A decoder that read the text."""
    passage = passage_of(text)
    count = len(passage)
    records = [
        record_of(f"L{n}", count, count, causal=True, seed=n, planted=n == 1) for n in range(layers)
    ]
    return Look(Seen(records, passage), aids=aids, word=word, head=head)


def translated_look() -> Look:
    """An encoder-decoder that read one text and wrote another."""
    source, target = passage_of("le chat noir dort"), passage_of("⏵ the black cat sleeps")
    records = [
        record_of("E0", len(source), len(source), causal=False, seed=11),
        record_of("L0", len(target), len(target), causal=True, seed=12),
        record_of("C0", len(target), len(source), causal=False, seed=13),
    ]
    return Look(Seen(records, target, source=source))


def written_look() -> Look:
    """A decoder that read "The kids were" and wrote the rest of the sentence, a token at a time."""
    passage, prompt = passage_of(SENTENCE), 3
    count = len(passage) - 1  # the last token was not read again
    records = [
        record_of(f"L{n}", count, count, causal=True, seed=n, planted=n == 1) for n in range(2)
    ]
    probabilities = tuple(0.5 for _ in range(len(passage) - prompt))
    read = Passage(passage.text, passage.tokens[:-1])
    return Look(Seen(records, read), written=GeneratedText(passage, prompt, probabilities))
