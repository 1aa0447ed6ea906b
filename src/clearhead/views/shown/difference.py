"""The difference of two looks, heads, models or traces, as something that shows itself."""

from __future__ import annotations

from clearhead.explain.difference import (
    CellChange,
    Difference,
    HeadChange,
    HeadMaps,
    WordChange,
)
from clearhead.views.shown.base import Shown


class ShownDifference(Shown[Difference]):
    """The heads, words and weights that changed, the largest change first."""

    @property
    def before(self) -> str:
        """The name of the first: its text, head or model."""
        return self.insight.before

    @property
    def after(self) -> str:
        """The name of the second."""
        return self.insight.after

    @property
    def heads(self) -> tuple[HeadChange, ...]:
        """The change of each head, the largest first."""
        return self.insight.heads

    @property
    def words(self) -> tuple[WordChange, ...]:
        """The change of each word, the largest first."""
        return self.insight.words

    @property
    def changes(self) -> tuple[CellChange, ...]:
        """The single weights that changed most."""
        return self.insight.changes

    @property
    def gone(self) -> tuple[str, ...]:
        """The words that only the first has."""
        return self.insight.gone

    @property
    def new(self) -> tuple[str, ...]:
        """The words that only the second has."""
        return self.insight.new

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on the comparison, as sentences."""
        return self.insight.notes

    @property
    def pictures(self) -> HeadMaps | None:
        """The head with the largest change, on both sides; None for long texts."""
        return self.insight.pictures

    @property
    def models(self) -> tuple[str, str]:
        """The names of the two models; "" where they are not known."""
        return self.insight.models

    @property
    def maps(self) -> tuple[HeadMaps, ...]:
        """The maps of the most changed heads, before and after; none for long texts."""
        return self.insight.maps

    @property
    def rows(self) -> tuple[tuple[int, int], ...]:
        """The places of the words that look, before and after, that are compared."""
        return self.insight.rows

    @property
    def columns(self) -> tuple[tuple[int, int], ...]:
        """The places of the words that are looked at, before and after, that are compared."""
        return self.insight.columns
