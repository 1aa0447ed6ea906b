"""One head, one word or all heads at once, as something that shows itself."""

from __future__ import annotations

from typing import Literal

import numpy as np
from jaxtyping import Bool, Float

from clearhead.explain.pictures import Aids, Gallery, HeadPicture, Mark, Pool, Source, WordPicture
from clearhead.views.shown.base import Shown


class ShownHead(Shown[HeadPicture]):
    """The whole attention map of a head, or of several heads as one."""

    @property
    def head(self) -> str:
        """The name of the head, "L16H5"; of several as one "max of L16"."""
        return self.insight.head

    @property
    def kind(self) -> Literal["self", "cross"]:
        """Self-attention or cross-attention."""
        return self.insight.kind

    @property
    def causal(self) -> bool:
        """True if a query sees only itself and the keys before it."""
        return self.insight.causal

    @property
    def rows(self) -> tuple[Mark, ...]:
        """The words of the queries."""
        return self.insight.rows

    @property
    def columns(self) -> tuple[Mark, ...]:
        """The words of the keys."""
        return self.insight.columns

    @property
    def weights(self) -> Float[np.ndarray, "query key"]:
        """The attention weights; 0 where masked."""
        return self.insight.weights

    @property
    def visible(self) -> Bool[np.ndarray, "query key"]:
        """False where the attention mask hides the key."""
        return self.insight.visible

    @property
    def hidden(self) -> tuple[int, ...]:
        """The columns that a reading aid hides."""
        return self.insight.hidden

    @property
    def hidden_mass(self) -> Float[np.ndarray, " query"]:
        """The sum of each row's weights on hidden columns."""
        return self.insight.hidden_mass

    @property
    def aids(self) -> Aids:
        """The reading aids that are on."""
        return self.insight.aids

    @property
    def notes(self) -> tuple[str, ...]:
        """Stated aids and caveats, as sentences."""
        return self.insight.notes

    @property
    def pooled(self) -> Pool | None:
        """How several heads became one picture; None: it is one head."""
        return self.insight.pooled

    @property
    def per_cell(self) -> int:
        """Tokens a side that share a cell, in the map of a long text."""
        return self.insight.per_cell

    @property
    def text(self) -> str:
        """The text that was read."""
        return self.insight.text

    @property
    def model(self) -> str:
        """The name of the model; "" where it is not known."""
        return self.insight.model

    @property
    def zoom(self) -> object:
        """Every single weight of the map of a long text, for its page; None of other pictures."""
        return self.insight.zoom


class ShownWord(Shown[WordPicture]):
    """Where one word looks: over all heads, or in one."""

    @property
    def row(self) -> int:
        """The number of the word among the rows."""
        return self.insight.row

    @property
    def mark(self) -> Mark:
        """The word itself, the query."""
        return self.insight.mark

    @property
    def marks(self) -> tuple[Mark, ...]:
        """The words of all keys."""
        return self.insight.marks

    @property
    def strengths(self) -> Float[np.ndarray, " key"]:
        """The number that each word is coloured by."""
        return self.insight.strengths

    @property
    def sources(self) -> tuple[Source, ...]:
        """The words that it looks at, the strongest first."""
        return self.insight.sources

    @property
    def head(self) -> str | None:
        """The name of the head; None: over all heads."""
        return self.insight.head

    @property
    def hidden(self) -> tuple[int, ...]:
        """The columns that a reading aid hides."""
        return self.insight.hidden

    @property
    def hidden_mass(self) -> float:
        """The sum of the weights on hidden columns."""
        return self.insight.hidden_mass

    @property
    def aids(self) -> Aids:
        """The reading aids that are on."""
        return self.insight.aids

    @property
    def notes(self) -> tuple[str, ...]:
        """Stated aids and caveats, as sentences."""
        return self.insight.notes

    @property
    def beyond(self) -> tuple[float, ...]:
        """For each n, what all sources but the first n have together."""
        return self.insight.beyond

    @property
    def own(self) -> int | None:
        """The column of the word itself; None in cross-attention."""
        return self.insight.own

    @property
    def pooled(self) -> str:
        """The heads together, "mean of all 270 heads"; "" for one head."""
        return self.insight.pooled

    @property
    def model(self) -> str:
        """The name of the model; "" where it is not known."""
        return self.insight.model


class ShownGallery(Shown[Gallery]):
    """All layers × heads, each a small map."""

    @property
    def names(self) -> tuple[tuple[str, ...], ...]:
        """The names of the heads, as [layer][head]."""
        return self.insight.names

    @property
    def maps(self) -> Float[np.ndarray, "layer head size size"]:
        """The small maps, max-pooled, without hidden columns."""
        return self.insight.maps

    @property
    def salience(self) -> tuple[tuple[float, ...], ...]:
        """The salience of each head, as [layer][head]."""
        return self.insight.salience

    @property
    def aids(self) -> Aids:
        """The reading aids that are on."""
        return self.insight.aids

    @property
    def notes(self) -> tuple[str, ...]:
        """Stated aids and caveats, as sentences."""
        return self.insight.notes
