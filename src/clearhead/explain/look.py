"""``Look``: where the words of a text look, as plain data computed when somebody asks for it."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from clearhead.errors import InputError
from clearhead.explain.generated import Written, WrittenText, written_tokens
from clearhead.explain.head_steps import head_steps
from clearhead.explain.layer_group import LayerGroup
from clearhead.explain.marks import find_mark, marks_of
from clearhead.explain.notes import hidden_name, notes_of
from clearhead.explain.pictures import (
    Aids,
    Gallery,
    HeadPicture,
    Mark,
    WordPicture,
    shown_number,
    shown_numbers,
)
from clearhead.explain.small_maps import small_maps
from clearhead.explain.sources import head_names, pooled, sources_of
from clearhead.explain.step_table import StepTable
from clearhead.explain.telling import Rows, TileOf, Told, most_telling, scores_of
from clearhead.explain.tiles import tile, visible_tile
from clearhead.trace.head_name import parse_name
from clearhead.trace.head_view import HeadView
from clearhead.trace.passage import Passage
from clearhead.trace.proof import Proof
from clearhead.trace.seen import LayerSummary, Seen

ALL = "all"
Names: TypeAlias = tuple[tuple[str, ...], ...]


class Look:
    """Where each word looks, in every head of a run.

    ``word`` and ``head`` are what somebody chose ("they" or 9; "L16H5", "L16" or "all"); what they
    left open is chosen by the rule of :mod:`clearhead.explain.telling`, and ``why`` says so.
    With the ``model``, step tables go on to W_O; ``written`` is what was generated, if anything.
    """

    def __init__(
        self,
        seen: Seen,
        *,
        aids: Aids | None = None,
        word: int | str | None = None,
        head: str | None = None,
        batch: int = 0,
        model: nn.Module | None = None,
        written: WrittenText | None = None,
        name: str = "",
    ) -> None:
        if not seen.records:
            seen["L0"]  # says why nothing was seen
        self.seen, self.aids, self.batch = seen, aids or Aids(), batch
        self._word, self._head = word, head
        self._model, self._written = model, written
        self.name = name  # of the model, where it is known
        self._groups: dict[tuple[str, bool], LayerGroup] = {}

    @property
    def text(self) -> str:
        """What was read (and written); of an encoder-decoder what its decoder read."""
        if self._written is not None:
            return self._written.passage.text
        passages = self.seen.labels.passages
        return passages[self.batch % len(passages)].text if passages else ""

    @property
    def source_text(self) -> str | None:
        """What an encoder-decoder's encoder read."""
        sources = self.seen.labels.sources
        return sources[self.batch % len(sources)].text if sources else None

    @property
    def layers(self) -> list[LayerSummary]:
        """Every layer that was seen."""
        return self.seen.layers

    @property
    def rows(self) -> tuple[Mark, ...]:
        """The words that ask, in the heads that are shown."""
        return self._group.rows

    @property
    def columns(self) -> tuple[Mark, ...]:
        """The words that are looked at there."""
        return self._group.columns

    @property
    def hidden(self) -> tuple[int, ...]:
        """Columns that a reading aid hides."""
        return self._group.hidden(self.aids)

    @property
    def shown_layers(self) -> list[str]:
        """The layers that have these rows and columns; the chosen head alone, if one was chosen."""
        return self._group.layers if self._head in (None, ALL) else [str(self._head)]

    def weights_of(self, layer: str, rows: Rows) -> tuple[list[str], Tensor]:
        """Names and weights of the heads of a layer: (head, row, column), for some rows."""
        return self._tile_of(self._group_of(layer))(layer, rows)

    def axes(self, layer: str) -> tuple[tuple[Mark, ...], tuple[Mark, ...]]:
        """Rows and columns of any layer or head; their tokens are positions of its record."""
        group = self._group_of(layer)
        return group.rows, group.columns

    @cached_property
    def proof(self) -> Proof:
        """That these numbers are what the model computed."""
        return self.seen.verify()

    @property
    def chosen_head(self) -> str:
        """The head that is shown unless another is asked for."""
        return self._head if self._head is not None else self._told.head

    @property
    def chosen_word(self) -> int:
        """The number of the row that is shown unless another is asked for."""
        return self._told.row

    @cached_property
    def why(self) -> str:
        """Why this word in this head is shown."""
        told, mark = self._told, self.rows[self._told.row]
        picked = {
            (True, True): "word and head were chosen",
            (True, False): "the word was chosen, the head by the rule",
            (False, True): "the head was chosen, the word by the rule",
            (False, False): "word and head were chosen by the rule",
        }[(self._word is not None, self._head is not None)]
        if told.column is None:
            return f"{picked}; no word stands out from what “{mark.text}” gives to others"
        other = self.columns[told.column].text
        return (
            f"{picked}: “{mark.text}” → “{other}” {told.weight:.2f} in {told.head} is strong, and "
            "more than other words give to it there"
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Reading aids that are on, and what to be careful about."""
        return self._notes(self._group, "")

    def head(self, name: str | None = None) -> HeadPicture:
        """The whole picture of a head; "L16" pools a layer's heads, "all" those of all layers."""
        name = self.chosen_head if name is None else name
        group = self._group_of(name)
        views = self._views(name)
        parts = (tile(view, group.rows, group.columns, self.aids.measure) for view in views)
        weights, count = pooled(parts, self.aids.pool)
        hidden = group.hidden(self.aids)
        numbers = shown_numbers(weights.numpy())
        masses = weights[:, list(hidden)].sum(dim=1).numpy()
        return HeadPicture(
            head=self._pooled_name(name, views, count),
            kind=group.kind,
            causal=group.causal,
            rows=group.rows,
            columns=group.columns,
            weights=numbers,
            visible=visible_tile(views[0], group.rows, group.columns),
            hidden=hidden,
            hidden_mass=shown_numbers(masses),
            aids=self.aids,
            notes=self._notes(group, self._pooled_name(name, views, count) if count > 1 else ""),
        )

    def word(self, word: int | str | None = None, head: str | None = None) -> WordPicture:
        """Where one word looks: over all heads, or in one."""
        group = self._group if head is None else self._group_of(head)
        row = self._row(group, word)
        views = self._views(ALL if head is None else head, group)
        mark = group.rows[row]
        names = [name for view in views for name in head_names(view)]
        weights = torch.cat([self._row_tile(view, mark, group) for view in views])
        pooled_row, _ = pooled(iter([weights[:, None]]), self.aids.pool)
        strengths = shown_numbers(pooled_row[0].numpy())
        hidden = group.hidden(self.aids)
        masses = weights[:, list(hidden)].sum(dim=1)
        together = f"all {len(names)} heads" if head is None else head if len(names) > 1 else ""
        return WordPicture(
            row=row,
            mark=mark,
            marks=group.columns,
            strengths=strengths,
            sources=sources_of(views, weights, strengths, group.columns, hidden, mark),
            head=names[0] if len(names) == 1 else None,
            hidden=hidden,
            hidden_mass=shown_number(float(masses.mean())),
            aids=self.aids,
            notes=self._notes(group, together),
        )

    def gallery(self, size: int = 24) -> Gallery:
        """All layers × heads that share the axes of what is shown, each a small map."""
        group = self._group
        names, telling = self.tellings()
        maps = small_maps([self._view(layer) for layer in group.layers], group, self.aids, size)
        notes = self._notes(group, "")
        return Gallery(names, shown_numbers(maps), telling, self.aids, notes)

    def tellings(self) -> tuple[Names, tuple[tuple[float, ...], ...]]:
        """For [layer][head]: its name, and how telling it is to the chosen word."""
        group, row = self._group, self._told.row
        names, telling = [], []
        for layer in group.layers:
            heads, scores = scores_of(group.field, layer, self._tile_of(group), row)
            names.append(tuple(heads))
            telling.append(tuple(shown_number(score) for score in scores.amax(dim=1).tolist()))
        return tuple(names), tuple(telling)

    def alignment(self) -> HeadPicture:
        """Cross-attention of source and written words, in its most telling head."""
        if not any(layer.kind == "cross" for layer in self.layers):
            raise InputError(
                "an alignment needs cross-attention, and this model has none.",
                hint="it is what an encoder-decoder has, e.g. the built-in model dates.",
            )
        if parse_name(self.chosen_head)[0][0] == "C":
            return self.head()
        return self.head(self._told_in(self._group_of("C")).head)

    def steps(self, head: str | None = None, word: int | str | None = None) -> StepTable:
        """The textbook's table of one query in one head: every step from q and k to Z."""
        name = self.chosen_head if head is None else head
        if not isinstance(parse_name(name)[1], int):
            raise InputError(f"a step table is of one head, such as L16H5; got {name}.")
        group = self._group_of(name)
        mark = group.rows[self._row(group, word)]
        tokens = self._group_of(name, words=False)
        return head_steps(
            self._view(name), mark, tokens.columns, model=self._model, proof=self.proof
        )

    @cached_property
    def generated(self) -> tuple[Written, ...]:
        """Each token that was written, and what the query that wrote it looked at."""
        if self._written is None:
            return ()
        tokens = self._group_of(self._group.letter, words=False)
        group = tokens.towards(self._group)
        passage = self._written.passage
        marks = marks_of(passage, len(passage), words=False)
        return written_tokens(self._written, marks, group.field, group.layers, self._tile_of(group))

    def with_aids(self, **changes: Any) -> Look:
        """The same look with other reading aids."""
        return Look(
            self.seen,
            aids=replace(self.aids, **changes),
            word=self._word,
            head=self._head,
            batch=self.batch,
            model=self._model,
            written=self._written,
            name=self.name,
        )

    @cached_property
    def _told(self) -> Told:
        row = None if self._word is None else find_mark(self._group.rows, self._word)
        return self._told_in(self._group, row, self._head)

    def _told_in(self, group: LayerGroup, row: int | None = None, head: str | None = None) -> Told:
        layers = group.layers if head is None or head == ALL else [head]
        return most_telling(group.field, layers, self._tile_of(group), row)

    @cached_property
    def _group(self) -> LayerGroup:
        """The layers whose axes are shown."""
        if self._head is not None and self._head != ALL:
            return self._group_of(self._head)
        letters = [layer.name[0] for layer in self.layers]
        return self._group_of("C" if "C" in letters else letters[0])

    def _group_of(self, name: str, *, words: bool | None = None) -> LayerGroup:
        """The group of a layer, of a head, or of a letter."""
        if name == ALL:
            return self._group
        words = self.aids.words if words is None else words
        layer = name if len(name) == 1 else self.seen[name].record.facts.name
        known = (layer[0], words)
        if known not in self._groups:
            self._groups[known] = LayerGroup.of(
                self.seen, layer[0], self.batch, words, self._passage
            )
        group = self._groups[known]
        if len(layer) == 1 or layer in group.layers:
            return group
        return LayerGroup.around(self.seen, [layer], self.batch, words, self._passage)

    @property
    def _passage(self) -> Passage | None:
        return None if self._written is None else self._written.passage

    def _row(self, group: LayerGroup, word: int | str | None) -> int:
        if word is not None:
            return find_mark(group.rows, word)
        return self._told.row if group.letter == self._group.letter else self._told_in(group).row

    def _view(self, name: str) -> HeadView:
        return self.seen[name].of(self.batch)

    def _views(self, name: str, group: LayerGroup | None = None) -> list[HeadView]:
        if name != ALL:
            return [self._view(name)]
        return [self._view(layer) for layer in (group or self._group).layers]

    def _tile_of(self, group: LayerGroup) -> TileOf:
        def tile_of(layer: str, rows: Rows) -> tuple[list[str], Tensor]:
            view = self._view(layer)
            marks = [group.rows[row] for row in rows]
            return head_names(view), tile(view, marks, group.columns, limit=None)

        return tile_of

    def _row_tile(self, view: HeadView, mark: Mark, group: LayerGroup) -> Tensor:
        return tile(view, [mark], group.columns, self.aids.measure, limit=None)[:, 0]

    def _pooled_name(self, name: str, views: list[HeadView], count: int) -> str:
        if count == 1:
            return head_names(views[0])[0]
        if name == ALL:
            return f"{self.aids.pool} of all {count} heads"
        return f"{self.aids.pool} of {name}"

    def _notes(self, group: LayerGroup, pooled: str) -> tuple[str, ...]:
        hidden = group.hidden(self.aids)
        special = any(group.columns[place].special for place in hidden)
        first = any(not group.columns[place].special for place in hidden)
        more = [self.seen.missed] if self.seen.missed else []
        more += sorted({layer.note for layer in self.layers if layer.note})
        batch = self.layers[0].batch
        if batch > 1:
            more.append(f"Sequence {self.batch} of a batch of {batch}.")
        merged = any(len(mark.tokens) > 1 for mark in (*group.rows, *group.columns))
        return notes_of(
            self.aids, merged=merged, hidden=hidden_name(first, special), pooled=pooled,
            written=group.own is None, more=tuple(more),
        )  # fmt: skip
