"""The count: sentences stream through the model, and of every weight only counts remain."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from clearhead.errors import InputError
from clearhead.explain.roles.batches import BATCH_TOKENS, Batch, batches
from clearhead.explain.roles.cases import ONE, Cases, cases_of
from clearhead.explain.roles.corpus import Corpus
from clearhead.explain.roles.layer_weights import layer_weights, merged_to_units
from clearhead.explain.roles.prepared import LEVELS, Prepared, prepare
from clearhead.explain.roles.properties import AnyProperty, Level
from clearhead.explain.roles.rarity import WordCounts
from clearhead.explain.roles.reader import Reader
from clearhead.explain.roles.sentence import Sentence
from clearhead.explain.roles.tally import CountedLayer, Tally
from clearhead.trace.record import LayerRecord
from clearhead.trace.watch import watch

WINDOW = 256  # sentences that are sorted by length at a time, and between two savings
Progress = Callable[[int, int | None], None]  # sentences done, of how many if that is known


@dataclass(frozen=True)
class Count:
    """How sentences are counted; ``share`` is (this process, how many processes)."""

    reader: Reader
    properties: Sequence[AnyProperty]
    layers: Any = None  # which, as watch takes them; None: all
    batch_tokens: int = BATCH_TOKENS
    share: tuple[int, int] = (0, 1)

    def windows(
        self, corpus: Corpus, tally: Tally, done: int = 0, progress: Progress | None = None
    ) -> Iterator[int]:
        """Add sentence after sentence to the tally; yields how many were read, window by window."""
        words, total = None, None
        if corpus.again:
            words, total = _first_reading(corpus)
        sentences = islice(iter(corpus), done, None)
        while window := list(islice(sentences, WINDOW)):
            mine = window[(self.share[0] - done) % self.share[1] :: self.share[1]]
            ready = [one for one in (self._prepared(s, words, tally) for s in mine) if one]
            counted = 0
            for batch in batches(ready, self.batch_tokens):
                self._count(batch, tally)
                counted += len(batch.sentences)
                if progress is not None:
                    progress(done + counted * len(window) // max(1, len(ready)), total)
            done += len(window)
            yield done

    def _prepared(
        self, sentence: Sentence, words: WordCounts | None, tally: Tally
    ) -> Prepared | None:
        """The sentence with its targets; None if it cannot be counted, which is counted."""
        if not sentence.text.strip():
            return None
        read = self.reader.read(sentence, words)
        tally.count("sentences", 1)
        if not 2 <= len(read.tokens) <= self.reader.longest:
            tally.count("too long" if len(read.tokens) > 2 else "too short", 1)
            return None
        ready = prepare(read, self.properties, tally.book)
        tally.count("tokens", len(ready.ids))
        tally.count("merged words", ready.merged)
        for name, cases in ready.cases.items():
            tally.occurs[name] = tally.occurs.get(name, 0) + cases
            tally.add_sample(name, sentence)
        return ready

    def _count(self, batch: Batch, tally: Tally) -> None:
        """Run a batch and count every layer."""
        ids = batch.ids()
        real = torch.arange(batch.width) < batch.lengths[:, None]
        with watch(self.reader.module, layers=self.layers) as seen:
            self.reader.run(ids, real)
        records = [record for record in seen.records if record.facts.kind == "self"]
        if not records:
            why = seen.missed or "no self-attention ran"
            seen.close()
            raise InputError(f"no attention was seen: {why}.")
        known = [_counted_layer(record) for record in records]
        tally.layers = tally.layers or known
        tally.room()
        at_work = BatchCount(batch, len(tally.book.entries))
        for layer, record in enumerate(records):
            at_work.add(record, layer, tally)
        seen.close()


def _first_reading(corpus: Corpus) -> tuple[WordCounts, int]:
    """How often words occur, and how many sentences there are: known before the model runs."""
    total = 0

    def counted() -> Iterator[Sentence]:
        nonlocal total
        for sentence in corpus:
            total += 1
            yield sentence

    return WordCounts.of_sentences(counted()), total


def _counted_layer(record: LayerRecord) -> CountedLayer:
    facts = record.facts
    return CountedLayer(facts.name, facts.heads, facts.causal, facts.path, facts.value_dim)


class BatchCount:
    """The counts of one batch, layer after layer; what layers share is computed once."""

    def __init__(self, batch: Batch, properties: int) -> None:
        self.owners = batch.owners()
        self.properties = properties
        self.edges = {level: batch.edges(level, properties) for level in LEVELS}
        self.rests = {level: batch.rests(level) for level in LEVELS}
        self.word_kinds = {level: batch.word_kinds(level) for level in LEVELS}
        self._visible: Tensor | None = None
        self._cases: dict[Level, tuple[Cases, Cases]] = {}

    def add(self, record: LayerRecord, layer: int, tally: Tally) -> None:
        """Count one layer, all heads at once."""
        weights, visible = layer_weights(record, len(self.owners))
        if self._visible is None or not torch.equal(self._visible, visible):
            self._visible, self._cases = visible, self._cases_of(visible)
        for level in LEVELS:
            if not len(self.edges[level].query):
                continue
            if level == "words":
                weights = merged_to_units(weights, self.owners)
            for variant, cases in enumerate(self._cases[level]):
                hits, mass, kept = self._of_heads(weights, cases)
                tally.add_heads(variant, layer, hits, mass, kept)
                tally.add_cases(variant, layer, cases)

    def _cases_of(self, visible: Tensor) -> dict[Level, tuple[Cases, Cases]]:
        merged = merged_to_units(visible[:, None].float(), self.owners)[:, 0] > 0
        found = {}
        for level, seen in zip(LEVELS, (visible, merged), strict=True):
            awake = seen & ~self.rests[level][:, None]
            parts = (self.edges[level], self.word_kinds[level], 2 * self.properties)
            found[level] = tuple(
                cases_of(parts[0], candidates, parts[1], parts[2]) for candidates in (seen, awake)
            )
        return found  # type: ignore[return-value]

    def _of_heads(self, weights: Tensor, cases: Cases) -> tuple[Tensor, Tensor, Tensor]:
        """(2 · property, head): hits, mass on targets and on candidates."""
        shown = weights.masked_fill(~cases.candidates[:, None], -1.0)
        strongest = shown.argmax(dim=-1).mT  # (batch, query, head)
        hits = strongest[cases.sentence, cases.query] == cases.key[:, None]
        by_head = weights.permute(0, 2, 3, 1)  # (batch, query, key, head)
        mass = by_head[cases.sentence, cases.query, cases.key]
        kept = shown.clamp_(min=0.0).sum(dim=-1).mT[cases.case_sentence, cases.case_query]
        both = torch.cat([hits.long(), _whole(mass)], dim=1)  # one sum is quicker than two
        hit_counts, masses = self._summed(cases.property, both).chunk(2, dim=1)
        return hit_counts, masses, self._summed(cases.case_property, _whole(kept))

    def _summed(self, where: Tensor, what: Tensor) -> Tensor:
        sums = torch.zeros(2 * self.properties, what.shape[1], dtype=torch.int64)
        return sums.index_add_(0, where, what)


def _whole(weights: Tensor) -> Tensor:
    return (weights.double() * ONE).round_().long()
