"""``Look``: what the words of a text attend to, as plain data computed on request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, TypeAlias

from torch import Tensor, nn

from clearhead.arguments import several, whole_number
from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.explain.choice import ALL, Choice, check_head
from clearhead.explain.finite import require_finite_record
from clearhead.explain.generated import GeneratedText, GeneratedToken, generated_tokens
from clearhead.explain.head_steps import head_steps
from clearhead.explain.layer_group import LayerGroup
from clearhead.explain.make_pictures import head_picture, small_maps, word_picture
from clearhead.explain.marks import find_mark, marks_of
from clearhead.explain.notes import notes_of
from clearhead.explain.pictures import (
    Aids,
    Colour,
    Gallery,
    HeadPicture,
    Hide,
    Mark,
    Measure,
    Pool,
    WordPicture,
    shortened,
    shown_number,
    shown_numbers,
)
from clearhead.explain.run_layers import RunLayers
from clearhead.explain.salience import Rows, Salient, scores_of
from clearhead.explain.step_table import StepTable
from clearhead.trace.head_name import parse_name
from clearhead.trace.head_view import HeadView
from clearhead.trace.passage import Passage
from clearhead.trace.proof import Proof
from clearhead.trace.seen import LayerSummary, Seen

EVERY_QUERY = 24  # words up to which a step table knows those of the other queries
Names: TypeAlias = tuple[tuple[str, ...], ...]


class Look:
    """A look at one run: what each word attends to, in every head. Views draw it.

    Args:
        seen: a trace: what ``watch`` recorded, or an opened file.
        aids: reading aids; every picture names those that are on.
        word: the word to show first, by its text ("they") or number (9); chosen by the rule of
            :mod:`clearhead.explain.salience` if None. ``why`` explains the choice.
        head: the head, layer or heads to show first: "L16H5", "L16" or "all"; likewise.
        batch: which sequence of the batch.
        model: the model, if there is one; with it, step tables continue through W_O.
        loaded: the same as ``ch.load`` gives it, if it does; with it, there are predictions.
        written: the text with its generated tokens, if there are any.

    Raises:
        InputError: the trace holds no attention, or numbers that are not finite, or has no such
            word or head.
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
        loaded: Loaded | None = None,
        written: GeneratedText | None = None,
    ) -> None:
        seen.require()
        check_head(head)
        for record in seen.records:
            require_finite_record(record)
        self.seen, self.aids, self.batch = seen, aids or Aids(), batch
        self._choice = Choice(word, head)
        self.loaded, self._written = loaded, written
        self._model = model if loaded is None else loaded.model
        self.name = "" if loaded is None else loaded.name
        passage = None if written is None else written.passage
        self._run = RunLayers(seen, batch, words=self.aids.words, written=passage)

    def __repr__(self) -> str:
        heads = sum(layer.heads for layer in self.layers)
        name = f"{self.name}, " if self.name else ""
        return f"Look({name}{len(self.layers)} layers, {heads} heads, {shortened(self.text)!r})"

    @property
    def text(self) -> str:
        """The text that was read (and generated); of an encoder-decoder, its decoder's text."""
        if self._written is not None:
            return self._written.passage.text
        passages = self.seen.labels.passages
        return passages[self.batch % len(passages)].text if passages else ""

    @property
    def written(self) -> GeneratedText | None:
        """The text with its generated tokens, if there are any."""
        return self._written

    @property
    def source_text(self) -> str | None:
        """The text that the encoder of an encoder-decoder read; None for other models."""
        sources = self.seen.labels.sources
        return sources[self.batch % len(sources)].text if sources else None

    @property
    def layers(self) -> list[LayerSummary]:
        """Every layer that was seen."""
        return self.seen.layers

    @property
    def rows(self) -> tuple[Mark, ...]:
        """The query words of the heads that are shown."""
        return self._group.rows

    @property
    def columns(self) -> tuple[Mark, ...]:
        """The key words of the heads that are shown."""
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
        """Return names and weights of the heads of a layer: (head, row, column), for some rows."""
        check_head(layer, "layer", given=True)
        group = self._group_of(layer)
        most = len(group.rows) - 1
        numbers = [
            whole_number("rows (each a number)", row, least=0, most=most)
            for row in several("rows", rows, "numbers of rows")
        ]
        return self._run.weights_in(group)(layer, numbers)

    @property
    def kept_bytes(self) -> int:
        """Memory of the weights of a short text, which are kept once they have been computed."""
        return self._run.kept_bytes

    def is_short(self, layer: str) -> bool:
        """True if all weights of the layer's group are kept once they have been computed."""
        check_head(layer, "layer", given=True)
        return self._run.is_short(self._group_of(layer))

    def axes(self, layer: str) -> tuple[tuple[Mark, ...], tuple[Mark, ...]]:
        """Return rows and columns of a layer or head; their tokens are positions of its record."""
        check_head(layer, "layer", given=True)
        group = self._group_of(layer)
        return group.rows, group.columns

    @cached_property
    def proof(self) -> Proof:
        """The proof that these numbers are what the model computed."""
        return self.seen.verify()

    @property
    def chosen_head(self) -> str:
        """The head that is shown unless another is requested."""
        return self._salient.head if self._choice.head is None else self._choice.head

    @property
    def chosen_word(self) -> int:
        """The number of the row that is shown unless another is requested."""
        return self._salient.row

    @cached_property
    def why(self) -> str:
        """The reason why this word and this head are shown, as a sentence."""
        return self._choice.why(self._salient, self._group)

    @property
    def notes(self) -> tuple[str, ...]:
        """Reading aids that are on, and what to be careful about."""
        return notes_of(self.aids, self._group, more=self._warnings)

    def head(self, name: str | None = None) -> HeadPicture:
        """Return the picture of a head; "L16" pools a layer's heads, "all" those of all layers."""
        check_head(name)
        name = self.chosen_head if name is None else name
        group, views = self._group_of(name), self._views(name)
        together = self._together(name)
        made = head_picture(views, group, self.aids, name=together, warnings=self._warnings)
        return replace(made, text=self.text, model=self.name)

    def word(self, word: int | str | None = None, head: str | None = None) -> WordPicture:
        """Return what one word attends to: over all heads, or in one."""
        check_head(head)
        name = ALL if head is None else head
        group, views = self._group_of(name), self._views(name)
        row, together = self._row(group, word), self._together(name)
        made = word_picture(views, group, row, self.aids, name=together, warnings=self._warnings)
        return replace(made, model=self.name)

    def gallery(self, size: int = 24) -> Gallery:
        """Return all layers × heads with the axes that are shown, each as a small map."""
        size = whole_number("size (cells)", size, least=1)
        group = self._group
        names, salience = self.saliences()
        maps = small_maps([self._run.view(layer) for layer in group.layers], group, self.aids, size)
        return Gallery(names, shown_numbers(maps), salience, self.aids, self.notes)

    def saliences(self) -> tuple[Names, tuple[tuple[float, ...], ...]]:
        """Return for [layer][head] its name, and how salient it is to the chosen word."""
        group, row = self._group, self._salient.row
        names, salience = [], []
        for layer in group.layers:
            heads, scores = scores_of(group.salience_axes, layer, self._run.weights_in(group), row)
            names.append(tuple(heads))
            salience.append(tuple(shown_number(score) for score in scores.amax(dim=1).tolist()))
        return tuple(names), tuple(salience)

    def alignment(self) -> HeadPicture:
        """Return the cross-attention of source and generated words, in its most salient head."""
        if not any(layer.kind == "cross" for layer in self.layers):
            raise InputError(
                "an alignment needs cross-attention, and this model has none.",
                hint="it is what an encoder-decoder has, e.g. the built-in model dates.",
            )
        if self._group.letter == "C":
            return self.head()
        return self.head(self._most_salient(self._run.group("C"), Choice()).head)

    def steps(self, head: str | None = None, word: int | str | None = None) -> StepTable:
        """Return the step table of one query in one head: every step from q and k to Z."""
        name = self.chosen_head if head is None else head
        if not isinstance(parse_name(name)[1], int):
            raise InputError(f"a step table is of one head, such as L16H5; got {name}.")
        group = self._group_of(name)
        row = self._row(group, word)
        table = self._step_table(name, group.rows[row])
        if len(group.rows) > EVERY_QUERY:
            return table
        every = partial(self._every_table, name, group.rows)
        return replace(table, queries=every)

    def _every_table(self, name: str, marks: Sequence[Mark]) -> tuple[StepTable, ...]:
        return tuple(self._step_table(name, mark) for mark in marks)

    def _step_table(self, name: str, mark: Mark) -> StepTable:
        made = head_steps(
            self._run.view(name),
            mark,
            self._run.group(name, words=False).columns,
            model=self._model,
            proof=self.proof,
            missed=self.seen.missed,
        )
        return replace(made, model=self.name)

    @cached_property
    def generated(self) -> tuple[GeneratedToken, ...]:
        """Each generated token, with what the query that predicted it attended to."""
        if self._written is None:
            return ()
        words = self.output_group
        group = self._run.group(words.letter, words=False).with_columns_of(words)
        passage = self._written.passage
        marks = marks_of(passage, len(passage), words=False)
        weights_of = self._run.weights_in(group)
        return generated_tokens(self._written, marks, group.salience_axes, group.layers, weights_of)

    @property
    def output_group(self) -> LayerGroup:
        """The layers that show what generated words attend to; cross-attention if there is any."""
        return self._run.group(self._run.output_letter)

    def with_aids(
        self,
        *,
        words: bool | None = None,
        hide: Hide | None = None,
        colour: Colour | None = None,
        pool: Pool | None = None,
        measure: Measure | None = None,
    ) -> Look:
        """Return the same look with other reading aids; None leaves an aid as it is."""
        given = {"words": words, "hide": hide, "colour": colour, "pool": pool, "measure": measure}
        changes: dict[str, Any] = {name: one for name, one in given.items() if one is not None}
        return Look(
            self.seen,
            aids=replace(self.aids, **changes),
            word=self._choice.word,
            head=self._choice.head,
            batch=self.batch,
            model=self._model,
            loaded=self.loaded,
            written=self._written,
        )

    @property
    def passages(self) -> tuple[Passage | None, Passage | None]:
        """The tokens that the decoder or encoder read (and wrote), and those of the source."""
        if self._written is not None:
            own: Passage | None = self._written.passage
        else:
            own = self._labelled(self.seen.labels.passages)
        return own, self._labelled(self.seen.labels.sources)

    def _labelled(self, passages: list[Passage]) -> Passage | None:
        return passages[self.batch % len(passages)] if passages else None

    @cached_property
    def _salient(self) -> Salient:
        return self._most_salient(self._group, self._choice)

    def _most_salient(self, group: LayerGroup, choice: Choice) -> Salient:
        return choice.find(group, self._run.weights_in(group))

    @cached_property
    def _group(self) -> LayerGroup:
        """The layers whose axes are shown."""
        return self._run.group(self._choice.layer or self._run.output_letter)

    def _group_of(self, name: str) -> LayerGroup:
        return self._group if name == ALL else self._run.group(name)

    def _row(self, group: LayerGroup, word: int | str | None) -> int:
        if word is not None:
            return find_mark(group.rows, word)
        if group.letter == self._group.letter:
            return self._salient.row
        return self._most_salient(group, Choice()).row

    def _views(self, name: str) -> list[HeadView]:
        layers = self._group.layers if name == ALL else [name]
        return [self._run.view(layer) for layer in layers]

    def _together(self, name: str) -> str:
        """The name of several heads together."""
        heads = sum(len(view.heads) for view in self._views(name))
        return f"all {heads} heads" if name == ALL else name

    @property
    def _warnings(self) -> tuple[str, ...]:
        """Caveats about the run itself, as sentences."""
        notes = [self.seen.missed] if self.seen.missed else []
        notes += sorted({layer.note for layer in self.layers if layer.note})
        batch = self.layers[0].batch
        if batch > 1:
            notes.append(f"Sequence {self.batch} of a batch of {batch}.")
        return tuple(notes)
