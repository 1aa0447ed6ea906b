"""The rows of a watched run: the kernels write them here, the observers get them later.

For each token and head the kernels write the query, the head's output, the largest score m and
Σ exp(s − m). Keys and values are read from the cache, as the kernels read them. Rows wait here,
since handing over one takes as long as handing over many.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from clearhead.engine.cache import SPARE
from clearhead.engine.kernels.structures import TILE
from clearhead.engine.observers import EngineObserver, SeenCall, SeenForward
from clearhead.engine.workspace import Segment

if TYPE_CHECKING:
    from clearhead.engine.runner import EngineRunner

MOST_BYTES = 48 << 20  # of rows that wait, unless one step of a batch has more
UNEQUAL_WINDOW = (
    "in a batch of texts of different lengths, a layer with a window no longer has all its keys"
)


class SeenRows:
    """The rows of one runner that wait, for the observers that watch it."""

    def __init__(self, runner: EngineRunner, observers: tuple[EngineObserver, ...]) -> None:
        engine, sizes = runner.engine, runner.engine.sizes
        self.observers = observers
        self._runner, self._modules = runner, engine.attention_modules
        self._widths = (sizes["key_width"], sizes["value_width"])
        self._shape = (sizes["heads"], sum(self._widths) + TILE)
        token_bytes = 4 * self._shape[0] * self._shape[1] * len(self._modules)
        self._most = max(1, min(SPARE, MOST_BYTES // token_bytes))
        self._memory = torch.empty(0)
        self._rows: list[int] = []  # of each token that waits: its row, position and id
        self._positions: list[int] = []
        self._ids: list[int] = []
        self._drafts = 0  # tokens of the latest step, if they may be drafts
        self._step_end = 0  # tokens that wait before the latest step

    def __len__(self) -> int:
        return len(self._rows)

    def begin(self, rows: list[list[int]]) -> None:
        """Get ready for new tokens: what does not go with them is handed over."""
        total, batch = sum(map(len, rows)), len(rows)
        equal = all(len(row) == len(rows[0]) for row in rows)
        longest = max(map(len, rows)) + len(self) // batch
        if not equal or self._uneven(batch) or longest > self._most:
            self.hand_over()
        self._step_end = len(self)
        self._reserve(len(self) + (total if batch > 1 else min(total, self._most)))

    def prepare(self, block: list[Segment], rows: list[list[int]], *, drafts: bool) -> None:
        """Point the kernels to where the rows of the next block go, and note its tokens."""
        count = sum(segment.last - segment.first for segment in block)
        if len(rows) == 1 and len(self) and len(self) + count > self._most:
            self.hand_over()
        self._reserve(len(self) + count)
        step = self._runner._step
        step.seen_row, step.seen_first = 4 * self._shape[0] * self._shape[1], len(self)
        for row, first, last, position in block:
            self._rows += [row] * (last - first)
            self._positions += range(position, position + last - first)
            self._ids += rows[row][first:last]
        self._drafts = len(self) - self._step_end if drafts else 0

    def crop(self, length: int) -> None:
        """Forget drafts that turned out wrong; hand the rest over before the text is cropped."""
        before = len(self) - self._drafts
        kept = [position for position in self._positions[before:] if position < length]
        if self._drafts and self._positions[before] <= length:
            end = before + len(kept)
            del self._rows[end:], self._positions[end:], self._ids[end:]
            self._drafts = 0
        else:
            self.hand_over()

    def hand_over(self) -> None:
        """Give all rows that wait to the observers."""
        if not self._rows:
            return
        rows: list[list[int]] = [[] for _ in range(max(self._rows) + 1)]
        for place, row in enumerate(self._rows):
            rows[row].append(place)
        places = _padded(rows, 0)
        positions = _padded([[self._positions[place] for place in row] for row in rows], -1)
        ids = _padded([[self._ids[place] for place in row] for row in rows], 0)
        self.forget()
        for observer in self.observers:
            observer.keep(SeenForward(ids, lambda: self._calls(places, positions)))

    def forget(self) -> None:
        """Nothing waits any more."""
        self._rows, self._positions, self._ids = [], [], []
        self._drafts = self._step_end = 0

    def stop(self) -> None:
        """Hand over what waits; the kernels write nothing from now on."""
        self.hand_over()
        self._runner._step.seen_row = 0

    def _uneven(self, batch: int) -> bool:
        return len(self._rows) != batch * self._rows.count(0) if self._rows else False

    def _reserve(self, tokens: int) -> None:
        if not self._memory.numel() or self._memory.shape[1] < tokens:
            larger = torch.empty(len(self._modules), max(tokens, self._most), *self._shape)
            if self._memory.numel():
                larger[:, : len(self)] = self._memory[:, : len(self)]
            self._memory = larger
            for attention, memory in zip(self._runner._attentions, larger, strict=True):
                attention.seen = memory.data_ptr()

    def _calls(
        self, places: Int[Tensor, "batch query"], positions: Int[Tensor, "batch query"]
    ) -> Iterator[SeenCall]:
        """The calls of all layers; a position of −1 is padding."""
        masks = _Masks(positions)
        layer = cross_layer = 0
        for number, module in enumerate(self._modules):
            if self._runner._attentions[number].cross:
                yield self._cross_call(
                    module, cross_layer, self._parts(number, places, masks), masks
                )
                cross_layer += 1
            else:
                yield self._self_call(module, layer, self._parts(number, places, masks), masks)
                layer += 1

    def _self_call(
        self, module: nn.Module, layer: int, parts: dict[str, Any], masks: _Masks
    ) -> SeenCall:
        engine, cache = self._runner.engine, self._runner._cache
        assert cache is not None
        window = engine.windows[layer]
        kept, index = cache.layers[layer]
        first, last = 0, masks.keys
        stored = max(max(self._runner._stored), last)
        if window and stored > kept.capacity:
            first = max(0, min(masks.first - 1, masks.first + 1 - window))
            if masks.unequal:
                return SeenCall(module, reason=UNEQUAL_WINDOW)
        key, value = kept.read(index, range(first, last), *self._dims())
        return SeenCall(
            module, key=key, value=value, mask=masks.of(window, first), **parts, **self._formula()
        )

    def _cross_call(
        self, module: nn.Module, layer: int, parts: dict[str, Any], masks: _Masks
    ) -> SeenCall:
        cache, lengths = self._runner._source_cache, self._runner._source_lengths
        assert cache is not None
        key, value = cache.read(layer, range(max(lengths)), *self._dims())
        return SeenCall(
            module, cross=True, key=key, value=value, mask=masks.of_sources(lengths), **parts,
            **self._formula(),
        )  # fmt: skip

    def _parts(
        self, number: int, places: Int[Tensor, "batch query"], masks: _Masks
    ) -> dict[str, Any]:
        """Query, output and log-sum-exp of one layer; zeros where there is only padding."""
        rows = self._memory[number][places].transpose(1, 2)  # (batch, head, query, width)
        if masks.padding is not None:
            rows = rows.masked_fill(masks.padding[:, None, :, None], 0.0)
        key_width, value_width = self._widths
        key_dim, value_dim = self._dims()
        end = key_width + value_width
        logsum = rows[..., end] + rows[..., end + 1].log()
        if masks.padding is not None:
            logsum = logsum.masked_fill(masks.padding[:, None], 0.0)
        return {
            "query": rows[..., :key_dim].clone(memory_format=torch.contiguous_format),
            "output": rows[..., key_width : key_width + value_dim],
            "logsum": logsum,
        }

    def _dims(self) -> tuple[int, int]:
        sizes = self._runner.engine.sizes
        return sizes["key_dim"], sizes["value_dim"]

    def _formula(self) -> dict[str, Any]:
        step = self._runner._step
        return {"scale": float(step.scale), "softcap": float(step.softcap) or None}


def _padded(rows: list[list[int]], fill: int) -> Int[Tensor, "batch query"]:
    longest = max(map(len, rows))
    return torch.tensor([row + [fill] * (longest - len(row)) for row in rows])


class _Masks:
    """Which keys the rows may attend to; layers with the same window share a mask."""

    def __init__(self, positions: Int[Tensor, "batch query"]) -> None:
        self.positions = positions
        self.keys = int(positions.max()) + 1
        padding = positions < 0
        self.padding = padding if bool(padding.any()) else None
        self.unequal = bool((positions != positions[:1]).any())
        self.first = int(positions[positions >= 0].min())
        self._known: dict[tuple[int, int], Bool[Tensor, "batch 1 query key"]] = {}

    def of(self, window: int, first: int) -> Bool[Tensor, "batch 1 query key"] | None:
        """The mask over the keys from ``first`` on; None if it is causal and nothing else."""
        if not self.unequal and (not window or self.keys - first <= window):
            return None
        if (window, first) not in self._known:
            standing, key = self.positions[:, None, :, None], torch.arange(first, self.keys)
            seen = key <= standing
            self._known[window, first] = seen & (key > standing - window) if window else seen
        return self._known[window, first]

    def of_sources(self, lengths: list[int]) -> Bool[Tensor, "batch 1 query key"] | None:
        """The mask of cross-attention; None if every row sees every key."""
        if self.padding is None and min(lengths) == max(lengths):
            return None
        seen = (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None])[:, None, None]
        if self.padding is None:
            return seen
        return seen & ~self.padding[:, None, :, None]
