"""Attention masks: which query may attend to which key. ``True`` = may attend.

(That is SDPA's and ONNX's meaning; ``nn.MultiheadAttention`` means the opposite.)

A :class:`Mask` is a rule, not a matrix: it can be asked for any block of the map, so attention
over long texts never holds a whole (query × key) matrix. Rules combine with ``&``, ``|`` and
``~`` and draw themselves::

    >>> from clearhead.attention import masks
    >>> print((masks.causal() & masks.window(before=1)).draw(4, 4))
    ■ · · ·
    ■ ■ · ·
    · ■ ■ ·
    · · ■ ■

Query ``i`` *stands at* key position ``i + offset``. The default offset, keys − queries, aligns
the last query with the last key, which makes a step with a cache simply right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from clearhead.arguments import whole_number
from clearhead.errors import InputError, ShapeError
from clearhead.tensors import dense_tensor, device_of, row_numbers, same_device, whole_numbers

MOST = 2**40  # positions: beyond, torch's whole numbers overflow
MOST_SPELLED_OUT = 2**24  # rows or columns of a mask that is wanted as a tensor

Offset: TypeAlias = int | Int[Tensor, " batch"] | None


@dataclass(frozen=True)
class Block:
    """A rectangle of the map: rows (queries) × columns (keys), and the size of the whole."""

    rows: range
    columns: range
    queries: int
    keys: int
    device: torch.device

    def key(self) -> Int[Tensor, " key"]:
        """Index of each key in the block."""
        return torch.arange(self.columns.start, self.columns.stop, device=self.device)

    def standing(self, offset: Offset) -> Int[Tensor, "*batch query 1"]:
        """The key position at which each query of the block stands."""
        query = torch.arange(self.rows.start, self.rows.stop, device=self.device)[:, None]
        if isinstance(offset, Tensor):
            return query + _of_rows("offset", offset).to(self.device)  # (batch, 1, query, 1)
        return query + (self.keys - self.queries if offset is None else offset)

    def ends(self, offset: int | None) -> tuple[int, int]:
        """The key positions of the first and the last query of the block."""
        shift = self.keys - self.queries if offset is None else offset
        return self.rows.start + shift, self.rows.stop - 1 + shift


class Band(NamedTuple):
    """Adjacent keys, as most masks leave them: from ``before`` keys before the one that a query
    stands at to ``after`` keys after it; None: all there are."""

    before: int | None
    after: int | None
    offset: int | None = None

    def overlap(self, other: Band) -> Band | None:
        """The keys in both bands; None if the queries do not stand at the same place in both."""
        if self.offset != other.offset:
            return None
        before = [keys for keys in (self.before, other.before) if keys is not None]
        after = [keys for keys in (self.after, other.after) if keys is not None]
        return Band(min(before, default=None), min(after, default=None), self.offset)


WHOLE = Band(None, None)


@dataclass(frozen=True, eq=False)
class Mask:
    """A rule that says for any block of the map which query may attend to which key.

    ``rule`` gives the block as booleans; ``reach`` the keys outside of which the block is all
    False; ``full`` whether all of the block is True; ``band`` the whole mask, if it is one. These
    three only save work.
    """

    rule: Callable[[Block], Bool[Tensor, "*#batch #query #key"]]
    reach: Callable[[Block], range] = lambda block: block.columns
    full: Callable[[Block], bool] = lambda _: False
    band: Band | None = None

    def tensor(
        self, queries: int, keys: int, device: torch.device | str = "cpu"
    ) -> Bool[Tensor, "*batch query key"]:
        """The whole mask as booleans."""
        queries = whole_number("queries", queries, least=0, most=MOST_SPELLED_OUT)
        keys = whole_number("keys", keys, least=0, most=MOST_SPELLED_OUT)
        place = device_of("device", device, meta=True)
        block = Block(range(queries), range(keys), queries, keys, place)
        seen = self.rule(block)
        return seen.expand(*seen.shape[:-2], queries, keys)

    def draw(self, queries: int, keys: int, row: int = 0) -> str:
        """The mask as text, ■ may attend, · may not; ``row`` chooses among several in a batch."""
        seen = self.tensor(queries, keys)[None].flatten(0, -3)
        row = whole_number(f"row (the mask has {len(seen)})", row, least=0, most=len(seen) - 1)
        return "\n".join(" ".join("■" if cell else "·" for cell in line) for line in seen[row])

    def __and__(self, other: Mask | Tensor) -> Mask:
        other = as_mask(other)
        return Mask(
            rule=lambda block: self.rule(block) & other.rule(block),
            reach=lambda block: _overlap(self.reach(block), other.reach(block)),
            full=lambda block: self.full(block) and other.full(block),
            band=self.band and other.band and self.band.overlap(other.band),
        )

    def __or__(self, other: Mask | Tensor) -> Mask:
        other = as_mask(other)
        return Mask(
            rule=lambda block: self.rule(block) | other.rule(block),
            full=lambda block: self.full(block) or other.full(block),
        )

    def __invert__(self) -> Mask:
        return Mask(rule=lambda block: ~self.rule(block))

    __rand__ = __and__
    __ror__ = __or__


def as_mask(mask: Mask | Tensor) -> Mask:
    """A mask as it is; a boolean tensor as the mask that it spells out."""
    return mask if isinstance(mask, Mask) else dense(mask)


def dense(seen: Bool[Tensor, "*shape"]) -> Mask:
    """The mask that a boolean tensor (…, query, key) spells out; axes of size 1 are repeated."""
    if not isinstance(seen, Tensor):
        raise InputError(
            f"mask must be a rule from masks or a boolean tensor; got {type(seen).__name__}."
        )
    dense_tensor("mask", seen)
    if seen.dtype != torch.bool:
        raise InputError(
            f"mask must be boolean (True = may attend); got {seen.dtype}.",
            hint="numbers to add to the scores go into bias=; 0/1 flags need .bool().",
        )
    if seen.ndim < 2:
        raise ShapeError(f"mask needs the axes (…, query, key); got {tuple(seen.shape)}.")

    def rule(block: Block) -> Tensor:
        same_device("mask", seen, block.device)
        if seen.shape[-2] not in (1, block.queries) or seen.shape[-1] not in (1, block.keys):
            raise ShapeError(
                f"mask was made for other sizes: wanted (…, {block.queries} queries, {block.keys} "
                f"keys) or 1 in their place; got {tuple(seen.shape)}."
            )
        rows, columns = block.rows, block.columns
        part = seen if seen.shape[-2] == 1 else seen[..., rows.start : rows.stop, :]
        return part if seen.shape[-1] == 1 else part[..., columns.start : columns.stop]

    return Mask(rule)


def causal(offset: Offset = None) -> Mask:
    """No looking ahead: keys up to the one at which the query stands."""
    offset = _checked(offset)
    if isinstance(offset, Tensor):
        return Mask(rule=lambda block: block.key() <= block.standing(offset))
    fixed = offset
    return Mask(
        rule=lambda block: block.key() <= block.standing(fixed),
        reach=lambda block: _overlap(block.columns, range(block.ends(fixed)[1] + 1)),
        full=lambda block: block.columns.stop - 1 <= block.ends(fixed)[0],
        band=Band(None, 0, fixed),
    )


def window(before: int, after: int = 0, offset: Offset = None) -> Mask:
    """Only near keys: ``before`` keys before the query's own, its own, and ``after`` after it."""
    before = min(whole_number("before (keys)", before, least=0), MOST)
    after = min(whole_number("after (keys)", after, least=0), MOST)
    return near_keys(before, after, _checked(offset))


def near_keys(before: int, after: int = 0, offset: Offset = None) -> Mask:
    """:func:`window` of arguments that are checked already."""

    def rule(block: Block) -> Tensor:
        ahead = block.key() - block.standing(offset)
        return (ahead >= -before) & (ahead <= after)

    if isinstance(offset, Tensor):
        return Mask(rule)
    fixed = offset

    def reach(block: Block) -> range:
        first, last = block.ends(fixed)
        return _overlap(block.columns, range(max(first - before, 0), max(last + after + 1, 0)))

    def full(block: Block) -> bool:
        first, last = block.ends(fixed)
        return last - before <= block.columns.start and block.columns.stop - 1 <= first + after

    return Mask(rule, reach, full, Band(before, after, fixed))


def prefix(length: int | Int[Tensor, " batch"], offset: Offset = None) -> Mask:
    """Causal, but everybody sees the first ``length`` keys (a prefix language model)."""
    return causal(offset) | _first("length", length)


def lengths(count: int | Int[Tensor, " batch"]) -> Mask:
    """Only the first ``count`` keys of each row of the batch are real; the rest is padding."""
    return _first("count", count)


def _first(name: str, count: int | Int[Tensor, " batch"]) -> Mask:
    if isinstance(count, Tensor) and count.ndim:
        each = row_numbers(name, count)
        return Mask(lambda block: block.key() < _of_rows(name, each).to(block.device))
    known = min(whole_number(name, count, least=0), MOST)
    return Mask(lambda block: (block.key() < known)[None, :])


def padding(real: Bool[Tensor, "batch key"]) -> Mask:
    """The mask of a padded batch: True for keys that are real tokens, False for padding."""
    if dense_tensor("real", real).ndim != 2 or real.dtype != torch.bool:
        raise ShapeError(
            f"real must be boolean, (batch, key); got {real.dtype} of {tuple(real.shape)}.",
            hint="an attention_mask of 0 and 1 needs .bool().",
        )
    return dense(real[:, None, None, :])


def documents(ids: Int[Tensor, "*batch key"]) -> Mask:
    """Several documents packed into one row: a query sees only keys of its own document."""
    if whole_numbers("ids", ids).ndim not in (1, 2):
        raise ShapeError(f"documents: ids must be (key) or (batch, key); got {tuple(ids.shape)}.")

    def rule(block: Block) -> Tensor:
        same_device("ids", ids, block.device)
        if ids.shape[-1] != block.keys:
            raise ShapeError(
                f"documents: wanted an id for each of {block.keys} keys; got {ids.shape[-1]}."
            )
        of_key = ids[..., block.columns.start : block.columns.stop]
        of_query = ids[..., block.standing(None)[:, 0].clamp(min=0)]
        same = of_query[..., :, None] == of_key[..., None, :]
        return same if ids.ndim == 1 else same[:, None]

    return Mask(rule)


def _checked(offset: Offset) -> Offset:
    """None, a whole number, or one for each row of the batch."""
    if offset is None:
        return None
    if isinstance(offset, Tensor) and offset.ndim:
        return row_numbers("offset", offset, least=-MOST, most=MOST)
    return whole_number("offset", offset, least=-MOST, most=MOST)


def _of_rows(name: str, numbers: Tensor) -> Int[Tensor, "batch 1 1 1"]:
    """One number for each row of the batch, ready to meet (batch, head, query, key)."""
    if numbers.ndim != 1:
        raise ShapeError(
            f"{name} must be a number, or (batch) numbers; got {tuple(numbers.shape)}."
        )
    return numbers[:, None, None, None]


def _overlap(a: range, b: range) -> range:
    start = max(a.start, b.start)
    return range(start, max(start, min(a.stop, b.stop)))
