"""Counting: sentences stream through the model, and only counts of their weights are kept."""

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
from clearhead.explain.roles.corpus.rarity import WordCounts
from clearhead.explain.roles.corpus.sentence import Sentence
from clearhead.explain.roles.corpus.sources import Corpus
from clearhead.explain.roles.counts.tally import CountedLayer, Tally
from clearhead.explain.roles.layer_weights import layer_weights, merged_to_units
from clearhead.explain.roles.prepared import LEVELS, Prepared, prepare
from clearhead.explain.roles.properties import AnyProperty, Level
from clearhead.explain.roles.reader import Reader
from clearhead.trace.record import LayerRecord
from clearhead.trace.watching.watch import watch

WINDOW = 256  # sentences that are sorted by length at a time, and between two writes of the cache
Progress = Callable[[int, int | None], None]  # sentences done, of how many if that is known


@dataclass(frozen=True)
class Count:
    """The settings of a count; ``share`` is (this process, number of processes)."""

    reader: Reader
    properties: Sequence[AnyProperty]
    layers: Any = None  # which, as watch takes them; None: all
    batch_tokens: int = BATCH_TOKENS
    share: tuple[int, int] = (0, 1)

    def windows(
        self, corpus: Corpus, tally: Tally, done: int = 0, progress: Progress | None = None
    ) -> Iterator[int]:
        """Add all sentences to the tally; yields how many were read, window by window."""
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
        """The sentence with its targets; None if it cannot be counted (the tally counts those)."""
        if not sentence.text.strip():
            return None
        read = self.reader.read(sentence, words)
        tally.count("sentences", 1)
        if not 2 <= len(read.tokens) <= self.reader.longest:
            tally.count("too long" if len(read.tokens) > 2 else "too short", 1)
            return None
        ready = prepare(read, self.properties, tally.index)
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
        tally.expect([_counted_layer(record) for record in records])
        tally.grow()
        counts = BatchCount(batch, len(tally.index.entries))
        for layer, record in enumerate(records):
            counts.add(record, layer, tally)
        seen.close()


def _first_reading(corpus: Corpus) -> tuple[WordCounts, int]:
    """Count words and sentences before the model runs."""
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
        self.sinks = {level: batch.sinks(level) for level in LEVELS}
        self.word_kinds = {level: batch.word_kinds(level) for level in LEVELS}
        self._visible: Tensor | None = None
        self._cases: dict[Level, tuple[Cases, Cases]] = {}
        self._buffers: dict[str, Tensor] = {}

    def add(self, record: LayerRecord, layer: int, tally: Tally) -> None:
        """Count one layer, all heads at once."""
        weights, visible = layer_weights(record, len(self.owners))
        if self._visible is None or not torch.equal(self._visible, visible):
            self._visible, self._cases = visible, self._cases_of(visible)
        merged = merged_to_units(weights, self.owners) if len(self.edges["words"].query) else None
        for level, known in zip(LEVELS, (weights, merged), strict=True):
            if known is None or not len(self.edges[level].query):
                continue
            batch, heads, queries, keys = known.shape
            mass = self._buffer("mass", batch, queries, keys, heads)
            mass.copy_(_as_integers(known).permute(0, 2, 3, 1))
            for variant, cases in enumerate(self._cases[level]):
                if variant:  # in place: the weights are used no more
                    known.masked_fill_(self.sinks[level][:, None, None], 0.0)
                strongest = known.argmax(dim=-1).mT[:, :, None]
                looks = self._buffer("looks", batch, queries, keys, heads)
                looks.scatter_(2, strongest, 1.0)
                kept = _as_integers(known.sum(dim=-1)).mT.reshape(-1, heads).double()
                found = (
                    cases.targets @ looks.view(-1, heads),
                    cases.targets @ mass.view(-1, heads),
                    cases.queries @ kept,
                )
                looks.scatter_(2, strongest, 0.0)
                tally.add_heads(variant, layer, *(one.long() for one in found))
                tally.add_cases(variant, layer, cases)

    def _cases_of(self, visible: Tensor) -> dict[Level, tuple[Cases, Cases]]:
        merged = merged_to_units(visible[:, None].float(), self.owners)[:, 0] > 0
        found = {}
        for level, seen in zip(LEVELS, (visible, merged), strict=True):
            without_sinks = seen & ~self.sinks[level][:, None]
            parts = (self.edges[level], self.word_kinds[level], 2 * self.properties)
            found[level] = tuple(
                cases_of(parts[0], candidates, parts[1], parts[2])
                for candidates in (seen, without_sinks)
            )
        return found  # type: ignore[return-value]

    def _buffer(self, name: str, *shape: int) -> Tensor:
        """A buffer (sentence, query, key, head) of zeros that is reused: allocation is slow."""
        held = self._buffers.get(name)
        if held is None or held.shape != shape:
            held = self._buffers[name] = torch.zeros(shape, dtype=torch.float64)
        return held


def _as_integers(weights: Tensor) -> Tensor:
    """Weights as integers, in units of 2⁻³⁰."""
    return (weights * ONE).round_()
