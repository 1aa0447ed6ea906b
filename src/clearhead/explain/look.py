"""``Look``: where the words of a text look, as plain data computed when somebody asks for it."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, TypeAlias

from torch import Tensor, nn

from clearhead.errors import InputError
from clearhead.explain.choice import ALL, Choice
from clearhead.explain.generated import Written, WrittenText, written_tokens
from clearhead.explain.head_picture import head_picture
from clearhead.explain.head_steps import head_steps
from clearhead.explain.layer_group import LayerGroup
from clearhead.explain.marks import find_mark, marks_of
from clearhead.explain.notes import notes_of
from clearhead.explain.pictures import (
    Aids,
    Gallery,
    HeadPicture,
    Mark,
    WordPicture,
    shown_number,
    shown_numbers,
)
from clearhead.explain.run_layers import RunLayers
from clearhead.explain.small_maps import small_maps
from clearhead.explain.step_table import StepTable
from clearhead.explain.telling import Rows, Told, scores_of
from clearhead.explain.word_picture import word_picture
from clearhead.trace.head_name import parse_name
from clearhead.trace.head_view import HeadView
from clearhead.trace.proof import Proof
from clearhead.trace.seen import LayerSummary, Seen

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
        self._choice = Choice(word, head)
        self._model, self._written = model, written
        self.name = name  # of the model, where it is known
        passage = None if written is None else written.passage
        self._run = RunLayers(seen, batch, words=self.aids.words, written=passage)

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
        chosen = self._choice.layer
        return self._group.layers if chosen is None else [chosen]

    def weights_of(self, layer: str, rows: Rows) -> tuple[list[str], Tensor]:
        """Names and weights of the heads of a layer: (head, row, column), for some rows."""
        return self._run.tile_of(self._group_of(layer))(layer, rows)

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
        return self._told.head if self._choice.head is None else self._choice.head

    @property
    def chosen_word(self) -> int:
        """The number of the row that is shown unless another is asked for."""
        return self._told.row

    @cached_property
    def why(self) -> str:
        """Why this word in this head is shown."""
        return self._choice.why(self._told, self._group)

    @property
    def notes(self) -> tuple[str, ...]:
        """Reading aids that are on, and what to be careful about."""
        return notes_of(self.aids, self._group, more=self._warnings)

    def head(self, name: str | None = None) -> HeadPicture:
        """The whole picture of a head; "L16" pools a layer's heads, "all" those of all layers."""
        name = self.chosen_head if name is None else name
        group, views = self._group_of(name), self._views(name)
        together = self._together(name)
        return head_picture(views, group, self.aids, name=together, warnings=self._warnings)

    def word(self, word: int | str | None = None, head: str | None = None) -> WordPicture:
        """Where one word looks: over all heads, or in one."""
        name = ALL if head is None else head
        group, views = self._group_of(name), self._views(name)
        row, together = self._row(group, word), self._together(name)
        return word_picture(views, group, row, self.aids, name=together, warnings=self._warnings)

    def gallery(self, size: int = 24) -> Gallery:
        """All layers × heads that share the axes of what is shown, each a small map."""
        group = self._group
        names, telling = self.tellings()
        maps = small_maps([self._run.view(layer) for layer in group.layers], group, self.aids, size)
        return Gallery(names, shown_numbers(maps), telling, self.aids, self.notes)

    def tellings(self) -> tuple[Names, tuple[tuple[float, ...], ...]]:
        """For [layer][head]: its name, and how telling it is to the chosen word."""
        group, row = self._group, self._told.row
        names, telling = [], []
        for layer in group.layers:
            heads, scores = scores_of(group.field, layer, self._run.tile_of(group), row)
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
        if self._group.letter == "C":
            return self.head()
        return self.head(self._told_in(self._run.group("C"), Choice()).head)

    def steps(self, head: str | None = None, word: int | str | None = None) -> StepTable:
        """The textbook's table of one query in one head: every step from q and k to Z."""
        name = self.chosen_head if head is None else head
        if not isinstance(parse_name(name)[1], int):
            raise InputError(f"a step table is of one head, such as L16H5; got {name}.")
        group = self._group_of(name)
        mark = group.rows[self._row(group, word)]
        tokens = self._run.group(name, words=False)
        return head_steps(
            self._run.view(name), mark, tokens.columns, model=self._model, proof=self.proof
        )

    @cached_property
    def generated(self) -> tuple[Written, ...]:
        """Each token that was written, and what the query that wrote it looked at."""
        if self._written is None:
            return ()
        words = self.writing
        group = self._run.group(words.letter, words=False).towards(words)
        passage = self._written.passage
        marks = marks_of(passage, len(passage), words=False)
        tile_of = self._run.tile_of(group)
        return written_tokens(self._written, marks, group.field, group.layers, tile_of)

    @property
    def writing(self) -> LayerGroup:
        """The layers that tell where written words look: of an encoder-decoder cross-attention."""
        return self._run.group(self._run.writing)

    def with_aids(self, **changes: Any) -> Look:
        """The same look with other reading aids."""
        return Look(
            self.seen,
            aids=replace(self.aids, **changes),
            word=self._choice.word,
            head=self._choice.head,
            batch=self.batch,
            model=self._model,
            written=self._written,
            name=self.name,
        )

    @cached_property
    def _told(self) -> Told:
        return self._told_in(self._group, self._choice)

    def _told_in(self, group: LayerGroup, choice: Choice) -> Told:
        return choice.told(group, self._run.tile_of(group))

    @cached_property
    def _group(self) -> LayerGroup:
        """The layers whose axes are shown."""
        return self._run.group(self._choice.layer or self._run.writing)

    def _group_of(self, name: str) -> LayerGroup:
        return self._group if name == ALL else self._run.group(name)

    def _row(self, group: LayerGroup, word: int | str | None) -> int:
        if word is not None:
            return find_mark(group.rows, word)
        if group.letter == self._group.letter:
            return self._told.row
        return self._told_in(group, Choice()).row

    def _views(self, name: str) -> list[HeadView]:
        layers = self._group.layers if name == ALL else [name]
        return [self._run.view(layer) for layer in layers]

    def _together(self, name: str) -> str:
        """What several heads are called together."""
        heads = sum(len(view.heads) for view in self._views(name))
        return f"all {heads} heads" if name == ALL else name

    @property
    def _warnings(self) -> tuple[str, ...]:
        """What a reader must know of the run itself."""
        said = [self.seen.missed] if self.seen.missed else []
        said += sorted({layer.note for layer in self.layers if layer.note})
        batch = self.layers[0].batch
        if batch > 1:
            said.append(f"Sequence {self.batch} of a batch of {batch}.")
        return tuple(said)
