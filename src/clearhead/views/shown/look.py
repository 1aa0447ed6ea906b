"""A whole look: a text, a model, and every head, as something that shows itself."""

from __future__ import annotations

from functools import cached_property
from typing import overload

from torch import Tensor

from clearhead.checkpoints.load import Loaded
from clearhead.explain.generated import GeneratedText, GeneratedToken
from clearhead.explain.layer_group import LayerGroup
from clearhead.explain.lens import lens_of
from clearhead.explain.long_map import long_map
from clearhead.explain.look import Look, Names
from clearhead.explain.pictures import Aids, Colour, Hide, Mark, Measure, Pool
from clearhead.explain.predictions import Predictions, predictions_of, readable
from clearhead.explain.salience import Rows
from clearhead.trace.passage import Passage
from clearhead.trace.proof import Proof
from clearhead.trace.seen import LayerSummary, Seen
from clearhead.views.aids import checked_aids
from clearhead.views.shown.base import Shown
from clearhead.views.shown.pictures import ShownGallery, ShownHead, ShownWord
from clearhead.views.shown.predictions import ShownLens, ShownPrediction, ShownPredictions
from clearhead.views.shown.steps import ShownSteps


class ShownLook(Shown[Look]):
    """Where each word of a text looks, in every head of a model: the result of ``ch.look``.

    HTML has everything. SVG and PNG draw where the chosen word looks. CSV and JSON hold the weights
    of the chosen head, and the predictions. For others save ``look.head("L16H5")``,
    ``look.word("they")``, ``look.gallery()``, ``look.predictions()`` or ``look.lens()``.
    """

    def head(self, name: str | None = None) -> ShownHead:
        """The whole map of a head; "L16" pools a layer's heads, "all" those of all layers."""
        return ShownHead(self.insight.head(name))

    def word(self, word: int | str | None = None, head: str | None = None) -> ShownWord:
        """Where one word looks: over all heads, or in one."""
        return ShownWord(self.insight.word(word, head))

    def gallery(self, size: int = 24) -> ShownGallery:
        """All layers × heads that share the axes of what is shown, each a small map."""
        return ShownGallery(self.insight.gallery(size))

    def alignment(self) -> ShownHead:
        """Cross-attention of source and written words, in its most salient head."""
        return ShownHead(self.insight.alignment())

    def map(self, head: str | None = None, *, size: int = 512) -> ShownHead:
        """A head's map of a text of any length, in at most size × size cells.

        Its page opens with the whole map and zooms down to single weights.
        """
        return ShownHead(long_map(self.insight, head, size=size))

    def steps(self, head: str | None = None, word: int | str | None = None) -> ShownSteps:
        """The step table of one query in one head: every step from q and k to Z."""
        return ShownSteps(self.insight.steps(head, word))

    @overload
    def predictions(self, word: None = None, top: int = 5) -> ShownPredictions: ...
    @overload
    def predictions(self, word: int | str, top: int = 5) -> ShownPrediction: ...
    def predictions(
        self, word: int | str | None = None, top: int = 5
    ) -> ShownPredictions | ShownPrediction:
        """What the model says next: after a word, or after every one; and what really came."""
        if word is None:
            return ShownPredictions(self._predictions.top(top))
        return ShownPrediction(self._predictions.at(word, top))

    def lens(self) -> ShownLens:
        """What the model would say after each layer, at each word."""
        return ShownLens(lens_of(*readable(self.insight)))

    @cached_property
    def _predictions(self) -> Predictions:
        return predictions_of(*readable(self.insight))

    def with_aids(
        self,
        *,
        words: bool | None = None,
        hide: Hide | None = None,
        colour: Colour | None = None,
        pool: Pool | None = None,
        measure: Measure | None = None,
    ) -> ShownLook:
        """The same look with other reading aids; those that are not given stay."""
        given = {"words": words, "hide": hide, "colour": colour, "pool": pool, "measure": measure}
        aids = checked_aids(self.aids, **{k: v for k, v in given.items() if v is not None})
        return ShownLook(self.insight.with_aids(**vars(aids)))

    def saliences(self) -> tuple[Names, tuple[tuple[float, ...], ...]]:
        """For [layer][head]: its name, and how salient it is for the chosen word."""
        return self.insight.saliences()

    def weights_of(self, layer: str, rows: Rows) -> tuple[list[str], Tensor]:
        """Names and weights of the heads of a layer: (head, row, column), for some rows."""
        return self.insight.weights_of(layer, rows)

    def axes(self, layer: str) -> tuple[tuple[Mark, ...], tuple[Mark, ...]]:
        """Rows and columns of any layer or head."""
        return self.insight.axes(layer)

    @property
    def kept_bytes(self) -> int:
        """Memory of the weights of a short text, which are kept once they have been computed."""
        return self.insight.kept_bytes

    @property
    def name(self) -> str:
        """The name of the model; "" where it is not known."""
        return self.insight.name

    @property
    def loaded(self) -> Loaded | None:
        """The model; None for a trace."""
        return self.insight.loaded

    @property
    def passages(self) -> tuple[Passage | None, Passage | None]:
        """The tokens of the text, and those of the source."""
        return self.insight.passages

    @property
    def text(self) -> str:
        """The text that was read (and written); of an encoder-decoder that of its decoder."""
        return self.insight.text

    @property
    def written(self) -> GeneratedText | None:
        """The text with the tokens that the model wrote after it; None if it wrote none."""
        return self.insight.written

    def is_short(self, layer: str) -> bool:
        """True if all weights of the layer's group are kept once they have been computed."""
        return self.insight.is_short(layer)

    @property
    def source_text(self) -> str | None:
        """The text that an encoder-decoder's encoder read."""
        return self.insight.source_text

    @property
    def seen(self) -> Seen:
        """The trace that everything is computed from."""
        return self.insight.seen

    @property
    def aids(self) -> Aids:
        """The reading aids that are on."""
        return self.insight.aids

    @property
    def batch(self) -> int:
        """The number of the sequence in its batch."""
        return self.insight.batch

    @property
    def layers(self) -> list[LayerSummary]:
        """Every layer that was seen."""
        return self.insight.layers

    @property
    def shown_layers(self) -> list[str]:
        """The layers that have these rows and columns."""
        return self.insight.shown_layers

    @property
    def rows(self) -> tuple[Mark, ...]:
        """The words of the queries, in the heads that are shown."""
        return self.insight.rows

    @property
    def columns(self) -> tuple[Mark, ...]:
        """The words of the keys there."""
        return self.insight.columns

    @property
    def hidden(self) -> tuple[int, ...]:
        """The columns that a reading aid hides."""
        return self.insight.hidden

    @property
    def chosen_head(self) -> str:
        """The head that is shown unless you ask for another."""
        return self.insight.chosen_head

    @property
    def chosen_word(self) -> int:
        """The number of the row that is shown unless you ask for another."""
        return self.insight.chosen_word

    @property
    def why(self) -> str:
        """The reason why this word and this head are shown."""
        return self.insight.why

    @property
    def notes(self) -> tuple[str, ...]:
        """Stated aids and caveats, as sentences."""
        return self.insight.notes

    @property
    def proof(self) -> Proof:
        """The proof that the model computed these numbers."""
        return self.insight.proof

    @property
    def generated(self) -> tuple[GeneratedToken, ...]:
        """Each token that was written, and what its query looked at."""
        return self.insight.generated

    @property
    def output_group(self) -> LayerGroup:
        """The layers in which written words look at others."""
        return self.insight.output_group
