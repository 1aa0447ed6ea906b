"""Layers of a run that share their axes: the decoder's, the encoder's, the cross-attention's."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from clearhead.explain.marks import hidden_columns, marks_of
from clearhead.explain.pictures import Aids, Mark
from clearhead.explain.telling import Field
from clearhead.text.token import Token
from clearhead.trace.head_view import HeadView
from clearhead.trace.passage import Passage
from clearhead.trace.seen import Seen

NEXT = Token(-1, "next", 0, 0, special=True)  # what the last query wrote, where nobody noted it


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
        """The layers that are shaped like the first with this letter."""
        layers = [layer for layer in seen.layers if layer.name[0] == letter]
        if not layers:
            seen[f"{letter}0"]  # says which layers there are
        first = (layers[0].queries, layers[0].keys)
        alike = [layer.name for layer in layers if (layer.queries, layer.keys) == first]
        return cls.around(seen, alike, batch, words, written)

    @classmethod
    def around(
        cls, seen: Seen, layers: list[str], batch: int, words: bool, written: Passage | None
    ) -> LayerGroup:
        """These layers, with the marks of the first one's axes."""
        view = seen[layers[0]].of(batch)
        facts = view.record.facts
        rows, columns = _axes(view, words, written)
        own = _own(view, rows, columns) if facts.kind == "self" else None
        return cls(facts.name[0], layers, facts.kind, facts.causal, rows, columns, own)

    def towards(self, words: LayerGroup) -> LayerGroup:
        """The rows of this group (tokens) with the columns of another (words)."""
        own = None
        if self.own is not None:
            owner = {place: i for i, mark in enumerate(words.columns) for place in mark.tokens}
            own = tuple(owner[self.columns[column].tokens[-1]] for column in self.own)
        return replace(self, columns=words.columns, own=own)

    def hidden(self, aids: Aids) -> tuple[int, ...]:
        """The columns that are hidden."""
        return hidden_columns(self.columns, aids, causal=self.causal and self.kind == "self")

    @property
    def field(self) -> Field:
        """Where something can be telling: never at the first and special tokens."""
        return Field(self.rows, self.columns, self.hidden(Aids()), self.own, self.causal)


def _axes(
    view: HeadView, words: bool, written: Passage | None
) -> tuple[tuple[Mark, ...], tuple[Mark, ...]]:
    """Columns as they were read; rows too, but in cross-attention as what they wrote."""
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
    """For each row the column that it is; the first keys may have been read before."""
    shift = view.columns.length - view.rows.length
    owner = {place: number for number, mark in enumerate(columns) for place in mark.tokens}
    return tuple(owner.get(mark.tokens[-1] + shift, -9) for mark in rows)
