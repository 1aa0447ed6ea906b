"""The layers of a run as a look needs them: in groups that share their axes, and as weights."""

from __future__ import annotations

from torch import Tensor

from clearhead.explain.layer_group import LayerGroup
from clearhead.explain.sources import head_names
from clearhead.explain.telling import Rows, TileOf
from clearhead.explain.tiles import tile
from clearhead.trace.head_view import HeadView
from clearhead.trace.passage import Passage
from clearhead.trace.seen import Seen


class RunLayers:
    """One sequence of a run: its layers by name, by group and by weights.

    ``words``: axes are words, unless somebody asks for tokens. ``written``: the text with what was
    generated, which names the rows of cross-attention.
    """

    def __init__(self, seen: Seen, batch: int, *, words: bool, written: Passage | None) -> None:
        self.seen, self.batch = seen, batch
        self._words, self._written = words, written
        self._groups: dict[tuple[str, bool], LayerGroup] = {}

    @property
    def writing(self) -> str:
        """The letter of the layers that tell where written words look: cross-attention's, if any"""
        letters = [layer.name[0] for layer in self.seen.layers]
        return "C" if "C" in letters else letters[0]

    def group(self, name: str, *, words: bool | None = None) -> LayerGroup:
        """The group of a layer, of a head, or of a letter."""
        words = self._words if words is None else words
        layer = name if len(name) == 1 else self.seen[name].record.facts.name
        known = (layer[0], words)
        if known not in self._groups:
            self._groups[known] = LayerGroup.of(
                self.seen, layer[0], self.batch, words, self._written
            )
        group = self._groups[known]
        if len(layer) == 1 or layer in group.layers:
            return group
        return LayerGroup.around(self.seen, [layer], self.batch, words, self._written)

    def view(self, name: str) -> HeadView:
        """A layer or a head."""
        return self.seen[name].of(self.batch)

    def tile_of(self, group: LayerGroup) -> TileOf:
        """How the weights of a group's layers are had: by a layer's name and some rows."""

        def weights_of(layer: str, rows: Rows) -> tuple[list[str], Tensor]:
            view = self.view(layer)
            marks = [group.rows[row] for row in rows]
            return head_names(view), tile(view, marks, group.columns, limit=None)

        return weights_of
