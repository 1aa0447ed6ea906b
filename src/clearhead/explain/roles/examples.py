"""Examples of a role: real sentences, where the head looked in them, and where it should have."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from clearhead.explain.roles.batches import Batch, batches
from clearhead.explain.roles.book import Book
from clearhead.explain.roles.judging import Role
from clearhead.explain.roles.layer_weights import layer_weights, merged_to_units
from clearhead.explain.roles.prepared import Prepared, prepare
from clearhead.explain.roles.properties import AnyProperty, Level
from clearhead.explain.roles.reader import Reader
from clearhead.explain.roles.sentence import Span
from clearhead.explain.roles.tally import Tally
from clearhead.explain.roles.tokenised import TokenisedSentence
from clearhead.trace.watch import watch

SHOWN = 3  # examples of each role
KEYS = 4  # strongest keys of each example
SENTENCES = 6  # samples that are looked at for each role


@dataclass(frozen=True)
class Key:
    """A place that the query looked at."""

    text: str
    span: Span
    weight: float
    target: bool


@dataclass(frozen=True)
class Example:
    """One query in its sentence; ``keys`` are what it looked at, strongest first."""

    text: str
    query: str
    span: Span
    keys: tuple[Key, ...]
    mass: float  # on all targets

    @property
    def hit(self) -> bool:
        """Whether the strongest key is a target."""
        return self.keys[0].target


def examples_of(
    roles: Sequence[Role],
    tally: Tally,
    reader: Reader,
    properties: Sequence[AnyProperty],
) -> dict[tuple[str, str], tuple[Example, ...]]:
    """Examples by (head, property): the strongest hits in the samples, and a miss if there is one.

    Each sentence gives at most one hit, so that examples differ.
    """
    wanted: dict[str, list[Role]] = defaultdict(list)
    for role in roles:
        wanted[role.property].append(role)
    found: dict[tuple[str, str], list[Example]] = defaultdict(list)
    for name, alike in wanted.items():
        ready, read = _samples(name, tally, reader, properties)
        for batch in batches(ready):
            for role, example in _in_batch(batch, name, alike, tally, reader, read):
                found[role.head, role.property].append(example)
    return {pair: _best(examples) for pair, examples in found.items()}


def _samples(
    name: str, tally: Tally, reader: Reader, properties: Sequence[AnyProperty]
) -> tuple[list[Prepared], dict[str, TokenisedSentence]]:
    held = sorted(tally.samples.get(name, []), reverse=True)[:SENTENCES]
    read = {sentence.text: reader.read(sentence) for _, _, sentence in held}
    book = Book(list(tally.book.entries), dict(tally.book.numbers))
    return [prepare(one, properties, book) for one in read.values()], read


def _in_batch(
    batch: Batch,
    name: str,
    roles: list[Role],
    tally: Tally,
    reader: Reader,
    read: dict[str, TokenisedSentence],
) -> Iterator[tuple[Role, Example]]:
    level = tally.book.entries[tally.book.numbers[name]].level
    layers = {role.head.rpartition("H")[0] for role in roles}
    real = torch.arange(batch.width) < batch.lengths[:, None]
    with watch(reader.module, layers=sorted(layers)) as seen:
        reader.run(batch.ids(), real)
    for record in seen.records:
        if record.facts.name not in layers:
            continue
        weights, visible = layer_weights(record, len(batch.sentences))
        if level == "words":
            owners = batch.owners()
            weights = merged_to_units(weights, owners)
            visible = merged_to_units(visible[:, None].float(), owners)[:, 0] > 0
        for role in roles:
            layer, _, head = role.head.rpartition("H")
            if layer != record.facts.name:
                continue
            candidates = visible & ~batch.rests(level)[:, None] if role.left_out else visible
            of_head = weights[:, int(head)].masked_fill(~candidates, 0.0)
            for row, one in enumerate(batch.sentences):
                number = tally.book.numbers[name]
                edges = one.edges[level][one.edges[level][:, 0] == number]
                sentence = read[one.sentence.text]
                yield from (
                    (role, example)
                    for example in _of_sentence(
                        sentence, level, edges, of_head[row], candidates[row]
                    )
                )
    seen.close()


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
    """A position as a reader sees it: its text, and its characters without the space before it."""
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
