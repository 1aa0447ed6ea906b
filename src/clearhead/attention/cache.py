"""The key-value cache: keys and values of the past, so that a new token costs one row of attention.

    cache = KVCache()
    keys, values = cache.append(key, value)     # all so far, the new ones last
    attention(query, keys, values, causal=True) # aligned to the end: simply right

One cache serves one attention layer. It is for inference: nothing in it carries a gradient.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from clearhead.arguments import whole_number
from clearhead.attention import masks
from clearhead.errors import InputError, ShapeError
from clearhead.tensors import dense_tensor, row_numbers, same_device

MOST_TOKENS = 2**30  # for which room is made at once


class KVCache:
    """Keys and values of one layer, preallocated for ``capacity`` tokens and doubled when full.

    Rows of a batch may have different lengths: ``append(..., counts=…)`` says how many of the new
    tokens of each row are real. Each row stays packed at the front; :meth:`mask` and
    :meth:`positions` then say what its queries may see and where they stand.

    Args:
        capacity: for how many tokens to make room at first.

    Raises:
        InputError: if ``capacity`` is negative.

    >>> import torch
    >>> cache = KVCache()
    >>> keys, values = cache.append(torch.zeros(2, 3, 5, 8), torch.zeros(2, 3, 5, 8))
    >>> keys, values = cache.append(torch.zeros(2, 3, 1, 8), torch.zeros(2, 3, 1, 8))
    >>> keys.shape
    torch.Size([2, 3, 6, 8])
    >>> cache
    KVCache(6 tokens, room for 10; batch 2, 3 key/value heads, key width 8, value width 8, float32)
    """

    def __init__(self, capacity: int = 0) -> None:
        self._capacity = whole_number("capacity (tokens)", capacity, least=0, most=MOST_TOKENS)
        self._keys: Tensor | None = None
        self._values: Tensor | None = None
        self._lengths: Tensor | None = None  # of each row, once they differ
        self._dropped = 0  # tokens that a sliding cache has forgotten
        self.length = 0  # tokens so far, in the longest row

    @property
    def lengths(self) -> Int[Tensor, " batch"]:
        """How many tokens each row holds."""
        if self._lengths is not None:
            return self._lengths
        return torch.full((0 if self._keys is None else self._keys.shape[0],), self.length)

    @property
    def rows(self) -> int | None:
        """How many rows of a batch it is made for; None before the first ``append``."""
        return None if self._keys is None else self._keys.shape[0]

    @property
    def capacity(self) -> int:
        """For how many tokens there is room before memory must grow."""
        return self._capacity if self._keys is None else self._keys.shape[2]

    @property
    def held(self) -> int:
        """How many tokens of the longest row are still held."""
        return self.length - self._dropped

    @property
    def ragged(self) -> bool:
        """True if the rows may differ in length."""
        return self._lengths is not None

    def __len__(self) -> int:
        return self.length

    def __repr__(self) -> str:
        name = type(self).__name__
        if self._keys is None or self._values is None:
            return f"{name}(empty, room for {self.capacity})"
        batch, kv_heads, _, key_dim = self._keys.shape
        value_dim = self._values.shape[3]
        lengths = f"{self.lengths.tolist()}" if self.ragged else f"{self.length}"
        return (
            f"{name}({lengths} tokens, room for {self.capacity}; batch {batch}, "
            f"{kv_heads} key/value heads, key width {key_dim}, value width {value_dim}, "
            f"{str(self._keys.dtype).removeprefix('torch.')})"
        )

    def append(
        self,
        key: Float[Tensor, "batch kv_head query key_dim"],
        value: Float[Tensor, "batch kv_head query value_dim"],
        counts: Int[Tensor, " batch"] | None = None,
    ) -> tuple[
        Float[Tensor, "batch kv_head key key_dim"], Float[Tensor, "batch kv_head key value_dim"]
    ]:
        """Add new tokens and return views of all keys and values up to the longest row."""
        self._fit(key, value)
        if counts is not None or self._lengths is not None:
            self._append_rows(key, value, counts)
        else:
            new = slice(self.held, self.held + key.shape[2])
            self._keys[:, :, new], self._values[:, :, new] = key.detach(), value.detach()  # type: ignore[index]
            self.length += key.shape[2]
        return self.keys, self.values

    @property
    def keys(self) -> Float[Tensor, "batch kv_head key key_dim"]:
        """All keys up to the longest row; zeros where a row is shorter."""
        return self._filled(self._keys)

    @property
    def values(self) -> Float[Tensor, "batch kv_head key value_dim"]:
        """All values up to the longest row; zeros where a row is shorter."""
        return self._filled(self._values)

    def positions(self, count: int) -> Int[Tensor, "#batch {count}"]:
        """The positions of the next ``count`` tokens of each row."""
        count = whole_number("count (tokens)", count, least=0, most=MOST_TOKENS)
        if self._lengths is None:
            return torch.arange(self.length, self.length + count)[None]
        return self._lengths[:, None] + torch.arange(count)

    def mask(self, window: int | None = None) -> masks.Mask:
        """The mask of the next queries of each row, once their keys are appended."""
        offset = self._offset()
        behind = masks.causal(offset)
        if window is None:
            return behind
        window = whole_number("window (keys, the query's own included)", window, least=1)
        return behind & masks.window(window - 1, offset=offset)

    def _offset(self) -> masks.Offset:
        """The place of the next queries among the keys."""
        return self.length if self._lengths is None else self._lengths

    def crop(self, length: int) -> None:
        """Forget everything from position ``length`` on."""
        length = self._checked_length(length)
        self.length = length
        if self._lengths is not None:
            self._lengths = self._lengths.clamp(max=length)
        for held in (self._keys, self._values):
            if held is not None:
                # A row shorter than the rest must not meet old numbers.
                held[:, :, length - self._dropped :] = 0

    def _checked_length(self, length: int) -> int:
        return whole_number("length (of this cache, in tokens)", length, least=0, most=self.length)

    def reorder(self, rows: Int[Tensor, " beam"]) -> None:
        """Make row i what row ``rows[i]`` was: beams that go on, die or split."""
        if self._keys is None or self._values is None:
            raise InputError("reorder: the cache is empty, there are no rows yet.")
        rows = row_numbers("rows", rows, most=self._keys.shape[0] - 1)
        same_device("rows", rows, self._keys.device)
        self._keys, self._values = self._keys[rows], self._values[rows]
        if self._lengths is not None:
            self._lengths = self._lengths[rows]
            self.length = int(self._lengths.max()) if len(rows) else 0

    def reset(self) -> None:
        """Forget everything but keep the memory."""
        self.length = self._dropped = 0
        self._lengths = None
        for held in (self._keys, self._values):
            if held is not None:
                held.zero_()

    def _fit(self, key: Tensor, value: Tensor) -> None:
        """Check the new tokens and make room for them."""
        _check_numbers("key", key)
        _check_numbers("value", value)
        if key.ndim != 4 or value.ndim != 4 or key.shape[:3] != value.shape[:3]:
            raise ShapeError(
                "append wants key (batch, kv_head, query, key_dim) and value (batch, kv_head, "
                f"query, value_dim); got {tuple(key.shape)} and {tuple(value.shape)}."
            )
        if value.dtype != key.dtype:
            raise InputError(
                f"key and value must share one dtype; got {key.dtype} and {value.dtype}."
            )
        if value.device != key.device:
            raise InputError(
                f"key and value must be on one device; got {key.device} and {value.device}."
            )
        if self._keys is None or self._values is None:
            room = max(self._capacity, key.shape[2])
            self._keys = key.new_zeros(*key.shape[:2], room, key.shape[3])
            self._values = value.new_zeros(*value.shape[:2], room, value.shape[3])
            return
        held = (*self._keys.shape[:2], self._keys.shape[3], self._values.shape[3], self._keys.dtype)
        new = (*key.shape[:2], key.shape[3], value.shape[3], key.dtype)
        if held != new:
            raise ShapeError(
                "the cache holds (batch, kv_head, key_dim, value_dim, dtype) = "
                f"{held}; append got {new}.",
                hint="reset() keeps the shape; a new batch needs a new cache.",
            )
        same_device("key", key, self._keys.device)
        if self.held + key.shape[2] > self._keys.shape[2]:
            room = max(2 * self._keys.shape[2], self.held + key.shape[2])
            self._keys, self._values = (_grown(part, room) for part in (self._keys, self._values))

    def _append_rows(self, key: Tensor, value: Tensor, counts: Tensor | None) -> None:
        """Put each row's real tokens right after the ones that it has."""
        assert self._keys is not None and self._values is not None
        batch, new = key.shape[0], key.shape[2]
        if counts is None:
            counts = torch.full((batch,), new)
        name = f"counts (how many of the {new} new tokens of each row are real)"
        counts = row_numbers(name, counts, rows=batch, most=new)
        starts = self.lengths
        for row in range(batch):
            start, count = int(starts[row]), int(counts[row])
            self._keys[row, :, start : start + count] = key[row, :, :count].detach()
            self._values[row, :, start : start + count] = value[row, :, :count].detach()
        self._lengths = starts + counts.to(starts.device)
        self.length = int(self._lengths.max())

    def _filled(self, held: Tensor | None) -> Tensor:
        if held is None:
            raise InputError("the cache is empty: append comes first.")
        return held[:, :, : self.held]


class SlidingKVCache(KVCache):
    """A cache that keeps only what a window of ``window`` keys can still see.

    ``length`` goes on counting all tokens (for positions); memory stays constant. Attend with
    ``causal=True, window=window``: a few keys beyond the window may still be held.
    """

    def __init__(self, window: int) -> None:
        window = whole_number(
            "window (keys, the query's own included)", window, least=1, most=MOST_TOKENS // 2
        )
        super().__init__(capacity=2 * window)
        self.window = window

    def append(
        self,
        key: Float[Tensor, "batch kv_head query key_dim"],
        value: Float[Tensor, "batch kv_head query value_dim"],
        counts: Int[Tensor, " batch"] | None = None,
    ) -> tuple[
        Float[Tensor, "batch kv_head key key_dim"], Float[Tensor, "batch kv_head key value_dim"]
    ]:
        """Add new tokens; returns at least the keys and values that their windows can reach."""
        if counts is not None:
            raise InputError("a sliding cache holds rows of equal length; counts is not for it.")
        _check_numbers("key", key)
        if key.ndim == 4 and self.held + key.shape[2] > self.capacity:
            self._slide()
        return super().append(key, value)

    def crop(self, length: int) -> None:
        """Forget everything from position ``length`` on; what slid out cannot come back."""
        length = self._checked_length(length)
        if length < min(self.length, self._dropped + self.window - 1) and self._dropped:
            raise InputError(
                f"crop({length}): a window of {self.window} would need keys from before position "
                f"{self._dropped}, which slid out of this cache."
            )
        super().crop(length)

    def _offset(self) -> masks.Offset:
        return None  # at the end, wherever that is once the cache has slid

    def _slide(self) -> None:
        """Drop all that the next query's window cannot reach."""
        keep = min(self.window - 1, self.held)
        for part in (self._keys, self._values):
            if part is not None:
                part[:, :, :keep] = part[:, :, self.held - keep : self.held].clone()
        self._dropped = self.length - keep


def _check_numbers(name: str, given: Tensor) -> None:
    if not dense_tensor(name, given).is_floating_point():
        raise InputError(f"{name} must be floating point; got {given.dtype}.")


def _grown(part: Tensor, room: int) -> Tensor:
    larger = part.new_zeros(*part.shape[:2], room, part.shape[3])
    larger[:, :, : part.shape[2]] = part
    return larger
