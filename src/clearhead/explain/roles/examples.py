"""Examples of a role: real sentences, with the keys that the head attends to and the targets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from clearhead.explain.roles.batches import Batch, batches
from clearhead.explain.roles.corpus.sentence import Span
from clearhead.explain.roles.corpus.tokenised import TokenisedSentence
from clearhead.explain.roles.counts.tally import Tally
from clearhead.explain.roles.judging import Role
from clearhead.explain.roles.layer_weights import layer_weights, merged_to_units
from clearhead.explain.roles.prepared import prepare
from clearhead.explain.roles.properties import AnyProperty, Level
from clearhead.explain.roles.property_index import PropertyIndex
from clearhead.explain.roles.reader import Reader
from clearhead.trace.record import LayerRecord
from clearhead.trace.watching.watch import watch

SHOWN = 3  # examples of each role
KEYS = 4  # strongest keys of each example
SENTENCES = 6  # samples that are run for each role: the shortest, which read best


@dataclass(frozen=True)
class Key:
    """A key that the query attends to."""

    text: str
    span: Span
    weight: float
    target: bool


@dataclass(frozen=True)
class Example:
    """One query in its sentence; ``keys`` are those that it attends to, strongest first."""

    text: str
    query: str
    span: Span
    keys: tuple[Key, ...]
    mass: float  # on all targets

    @property
    def hit(self) -> bool:
        """True if the strongest key is a target."""
        return self.keys[0].target


def examples_of(
    roles: Sequence[Role],
    tally: Tally,
    reader: Reader,
    properties: Sequence[AnyProperty],
) -> dict[tuple[str, str], tuple[Example, ...]]:
    """Find examples by (head, property): the strongest hits in the samples, and a miss if any.

    Each sentence gives at most one hit, so that examples differ. A sentence runs once for all roles
    that it is a sample of.
    """
    work = _Work(roles, tally, reader)
    index = PropertyIndex(list(tally.index.entries), dict(tally.index.numbers))
    ready = [prepare(one, properties, index) for one in work.read.values()]
    found: dict[tuple[str, str], list[Example]] = defaultdict(list)
    for batch in batches(ready):
        for role, example in work.in_batch(batch):
            found[role.head, role.property].append(example)
    return {pair: _best(examples) for pair, examples in found.items()}


class _Work:
    """The sentences of each role: the shortest samples of its property, tokenised."""

    def __init__(self, roles: Sequence[Role], tally: Tally, reader: Reader) -> None:
        self.index, self.reader = tally.index, reader
        self.by_layer: dict[str, list[Role]] = defaultdict(list)
        for role in roles:
            self.by_layer[role.head.rpartition("H")[0]].append(role)
        self.texts: dict[str, set[str]] = {}  # of each property
        self.read: dict[str, TokenisedSentence] = {}  # by text
        for name in dict.fromkeys(role.property for role in roles):
            held = (sentence for _, _, sentence in tally.samples.get(name, []))
            shortest = sorted(held, key=lambda one: (len(one.text), one.text))[:SENTENCES]
            self.texts[name] = {sentence.text for sentence in shortest}
            for sentence in shortest:
                if sentence.text not in self.read:
                    self.read[sentence.text] = reader.read(sentence)

    def in_batch(self, batch: Batch) -> Iterator[tuple[Role, Example]]:
        """Yield all examples in a batch."""
        real = torch.arange(batch.width) < batch.lengths[:, None]
        with watch(self.reader.module, layers=sorted(self.by_layer)) as seen:
            self.reader.run(batch.ids(), real)
        for record in seen.records:
            roles = self.by_layer.get(record.facts.name)
            if roles:
                yield from self._in_layer(batch, record, roles)
        seen.close()

    def _in_layer(
        self, batch: Batch, record: LayerRecord, roles: list[Role]
    ) -> Iterator[tuple[Role, Example]]:
        weights, visible = layer_weights(record, len(batch.sentences))
        owners = batch.owners()
        merged = merged_to_units(visible[:, None].float(), owners)[:, 0] > 0
        seen: dict[Level, tuple[Tensor, Tensor]] = {
            "tokens": (weights, visible),
            "words": (merged_to_units(weights, owners), merged),
        }
        for role in roles:
            number = self.index.numbers[role.property]
            level = self.index.entries[number].level
            of_heads, candidates = seen[level]
            if role.left_out:
                candidates = candidates & ~batch.sinks(level)[:, None]
            head = int(role.head.rpartition("H")[2])
            of_head = of_heads[:, head].masked_fill(~candidates, 0.0)
            for row, one in enumerate(batch.sentences):
                if one.sentence.text in self.texts[role.property]:
                    sentence = self.read[one.sentence.text]
                    edges = one.edges[level][one.edges[level][:, 0] == number]
                    for example in _of_sentence(
                        sentence, level, edges, of_head[row], candidates[row]
                    ):
                        yield role, example


def _of_sentence(
    sentence: TokenisedSentence, level: Level, edges: object, weights: Tensor, candidates: Tensor
) -> Iterator[Example]:
    targets: dict[int, set[int]] = defaultdict(set)
    for _, query, key in edges:  # type: ignore[attr-defined]
        if bool(candidates[query, key]):
            targets[int(query)].add(int(key))
    for query, aims in targets.items():
        if int(candidates[query].sum()) < 2:
            continue
        order = weights[query].argsort(descending=True, stable=True)[:KEYS].tolist()
        keys = tuple(
            Key(*_place(sentence, level, key), round(float(weights[query, key]), 4), key in aims)
            for key in order
            if float(weights[query, key]) > 0
        )
        if keys:
            text, span = _place(sentence, level, query)
            mass = float(weights[query, sorted(aims)].sum())
            yield Example(sentence.sentence.text, text, span, keys, round(mass, 4))


def _place(sentence: TokenisedSentence, level: Level, position: int) -> tuple[str, Span]:
    """The text of a position, and its characters without the space before it."""
    if level == "words":
        unit = sentence.units[position]
        text, start, end = unit.text, unit.start, unit.end
    else:
        token = sentence.tokens[position]
        text, start, end = token.text.strip() or token.text, token.start, token.end
    piece = sentence.sentence.text[start:end]
    return text, (start + len(piece) - len(piece.lstrip()), end)


def _best(examples: list[Example]) -> tuple[Example, ...]:
    ordered = sorted(examples, key=lambda one: (-one.mass, one.text, one.span))
    hits: dict[str, Example] = {}
    for one in ordered:
        if one.hit:
            hits.setdefault(one.text, one)
    misses = [one for one in reversed(ordered) if not one.hit]
    return (*list(hits.values())[:SHOWN], *misses[:1])
