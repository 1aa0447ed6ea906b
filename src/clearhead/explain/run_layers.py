"""The layers of one run: by name, in groups that share their axes, and as weights."""

from __future__ import annotations

from torch import Tensor

from clearhead.explain.layer_group import LayerGroup
from clearhead.explain.mark_weights import weights_between
from clearhead.explain.salience import Rows, WeightsOf
from clearhead.explain.sources import head_names
from clearhead.trace.head_view import HeadView
from clearhead.trace.passage import Passage
from clearhead.trace.seen import Seen

KEPT = 8_000_000  # weights of all heads between all words that are kept: 32 MB


class RunLayers:
    """One sequence of a run: its layers by name, by group and by weights.

    ``words``: axes are words unless tokens are requested. ``written``: the text with the generated
    tokens, which name the rows of cross-attention.
    """

    def __init__(self, seen: Seen, batch: int, *, words: bool, written: Passage | None) -> None:
        self.seen, self.batch = seen, batch
        self._words, self._written = words, written
        self._groups: dict[tuple[str, bool], LayerGroup] = {}
        self._whole: dict[tuple[str, int, int], Tensor] = {}

    @property
    def output_letter(self) -> str:
        """The letter of the layers that show what generated words attend to: "C" if it exists."""
        letters = [layer.name[0] for layer in self.seen.layers]
        return "C" if "C" in letters else letters[0]

    def group(self, name: str, *, words: bool | None = None) -> LayerGroup:
        """Return the group of a layer, of a head, or of a letter."""
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
        """Return the view of a layer or a head."""
        return self.seen[name].of(self.batch)

    def weights_in(self, group: LayerGroup) -> WeightsOf:
        """Return a function from a layer's name and some rows to the weights of its heads."""

        def weights_of(layer: str, rows: Rows) -> tuple[list[str], Tensor]:
            view = self.view(layer)
            if self.is_short(group):
                return head_names(view), self._all_rows(layer, view, group)[:, list(rows)]
            marks = [group.rows[row] for row in rows]
            return head_names(view), weights_between(view, marks, group.columns, limit=None)

        return weights_of

    def is_short(self, group: LayerGroup) -> bool:
        """True if all weights of a group's layers are few: they are then computed once and kept."""
        heads = sum(record.facts.heads for record in self.seen.records)
        return heads * len(group.rows) * len(group.columns) <= KEPT

    @property
    def kept_bytes(self) -> int:
        """Memory of the weights that are kept."""
        return sum(weights.nbytes for weights in self._whole.values())

    def _all_rows(self, layer: str, view: HeadView, group: LayerGroup) -> Tensor:
        key = (layer, len(group.rows), len(group.columns))
        if key not in self._whole:
            self._whole[key] = weights_between(view, group.rows, group.columns, limit=None)
        return self._whole[key]
