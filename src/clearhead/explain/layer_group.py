"""Groups of layers that share their axes: of the decoder, the encoder, the cross-attention."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from clearhead.explain.marks import hidden_columns, marks_of
from clearhead.explain.pictures import Aids, Mark
from clearhead.explain.salience import SalienceAxes
from clearhead.text.token import Token
from clearhead.trace.head_view import HeadView
from clearhead.trace.passage import Passage
from clearhead.trace.seen import Seen

NEXT = Token(
    -1, "next", 0, 0, special=True
)  # the token that the last query predicted, if it is not known


@dataclass(frozen=True)
class LayerGroup:
    """Layers whose names begin with the same letter and whose axes have the same lengths."""

    letter: str
    layers: list[str]
    kind: Literal["self", "cross"]
    causal: bool
    rows: tuple[Mark, ...]
    columns: tuple[Mark, ...]
    own: tuple[int, ...] | None  # the column that each row is; None in cross-attention

    @classmethod
    def of(
        cls, seen: Seen, letter: str, batch: int, words: bool, written: Passage | None
    ) -> LayerGroup:
        """Return the layers with the same axes as the first layer of this letter."""
        layers = [layer for layer in seen.layers if layer.name[0] == letter]
        if not layers:
            raise seen.unknown_layer(f"{letter}0")
        first = (layers[0].queries, layers[0].keys)
        alike = [layer.name for layer in layers if (layer.queries, layer.keys) == first]
        return cls.around(seen, alike, batch, words, written)

    @classmethod
    def around(
        cls, seen: Seen, layers: list[str], batch: int, words: bool, written: Passage | None
    ) -> LayerGroup:
        """Return these layers as a group, with the axes of the first."""
        view = seen[layers[0]].of(batch)
        facts = view.record.facts
        rows, columns = _axes(view, words, written)
        own = _own(view, rows, columns) if facts.kind == "self" else None
        return cls(facts.name[0], layers, facts.kind, facts.causal, rows, columns, own)

    def with_columns_of(self, words: LayerGroup) -> LayerGroup:
        """Return the rows of this group (tokens) with the columns of another (words)."""
        own = None
        if self.own is not None:
            owner = {place: i for i, mark in enumerate(words.columns) for place in mark.tokens}
            own = tuple(owner[self.columns[column].tokens[-1]] for column in self.own)
        return replace(self, columns=words.columns, own=own)

    def hidden(self, aids: Aids) -> tuple[int, ...]:
        """Return the columns that the reading aid hides."""
        return hidden_columns(self.columns, aids, causal=self.causal and self.kind == "self")

    @cached_property
    def salience_axes(self) -> SalienceAxes:
        """The axes with the columns that can be salient: not the first and special tokens."""
        return SalienceAxes(self.rows, self.columns, self.hidden(Aids()), self.own, self.causal)


def _axes(
    view: HeadView, words: bool, written: Passage | None
) -> tuple[tuple[Mark, ...], tuple[Mark, ...]]:
    """The marks of rows and columns; a row of cross-attention is the token that it predicted."""
    row_passage = view.rows.passage
    if view.record.facts.kind == "cross" and row_passage is not None:
        full = row_passage if written is None else written
        tokens = (*full.tokens, NEXT)[1 : view.rows.length + 1]
        row_passage = Passage(full.text, tokens)
    return (
        marks_of(row_passage, view.rows.length, words=words),
        marks_of(view.columns.passage, view.columns.length, words=words),
    )


def _own(view: HeadView, rows: tuple[Mark, ...], columns: tuple[Mark, ...]) -> tuple[int, ...]:
    """For each row the column of the same token; the first keys may be older (a cache)."""
    shift = view.columns.length - view.rows.length
    owner = {place: number for number, mark in enumerate(columns) for place in mark.tokens}
    return tuple(owner.get(mark.tokens[-1] + shift, -9) for mark in rows)
