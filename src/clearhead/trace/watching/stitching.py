"""Several calls of one layer, stitched into one record: the prompt, then every step.

A call continues a record if its keys say so: the key before the first new one must be, bit for bit,
the last recorded one (of some sequence: beams change places). Any other call is another layer that
shares the module (a second call within one forward), or it begins a new run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor

from clearhead.trace.chunks import Chunk, Parents
from clearhead.trace.record import LayerRecord
from clearhead.trace.row_rules import RowMask, RowRules

Keep: TypeAlias = Callable[[Tensor], Tensor]  # the same numbers, safe from later changes


@dataclass(frozen=True)
class NewRows:
    """The rows of one attention call, ready to be recorded, with every key that the call had."""

    query: Float[Tensor, "batch head query key_dim"]
    key: Float[Tensor, "batch kv_head key key_dim"]
    value: Float[Tensor, "batch kv_head key value_dim"] | None
    logsum: Float[Tensor, "batch head query"]
    output: Float[Tensor, "batch head query value_dim"] | None
    piece: RowRules
    cross: bool
    forward: int  # the number of the model's forward in which the call ran

    @property
    def past(self) -> int:
        """The number of keys before those of the new rows."""
        return self.key.shape[2] - self.query.shape[2]

    def chunk(self, known: int, parents: Parents, keep: Keep) -> Chunk:
        """The part that a record does not have yet: the rows, and the keys from ``known`` on."""
        value = None if self.value is None else keep(self.value[:, :, known:])
        output = None if self.output is None else keep(self.output)
        return Chunk(
            keep(self.query),
            keep(self.key[:, :, known:]),
            value,
            keep(self.logsum),
            output,
            self.piece,
            parents,
        )


class GrowingRecord:
    """A record to which later calls may add rows, and the last call that did."""

    def __init__(self, record: LayerRecord, rows: NewRows) -> None:
        self.record = record
        self.remember(rows)

    def remember(self, rows: NewRows) -> None:
        """Keep what the next call is compared with."""
        self.forward = rows.forward
        self.last_key = rows.key[:, :, -1].clone()

    def fits(self, rows: NewRows) -> bool:
        """True if the call has the shape and dtype of this record."""
        batch_and_heads = (rows.query.shape[:2], rows.key.shape[:2], rows.key.shape[3])
        return rows.key.dtype == self.last_key.dtype and batch_and_heads == (
            self.record.shape[:2],
            self.last_key.shape[:2],
            self.last_key.shape[2],
        )


@dataclass(frozen=True)
class Continuation:
    """How a call continues a record."""

    rows: NewRows
    known: int  # so many keys of the call are in the record already
    order: Int[Tensor, " batch"] | None = None  # beams: the sequence that each one continues
    cropped: bool = False  # the cache was cropped: the record forgets the keys after ``known``
    lengths: Int[Tensor, " batch"] | None = None  # of sequences whose lengths differ, before it

    def append_to(self, record: LayerRecord, parents: Parents, keep: Keep) -> None:
        """Add the rows and the new keys to the record."""
        if self.order is not None:
            parents.order = self.order
        if self.cropped:
            record.truncate(max(record.rows - (record.keys - self.known), 0), self.known)
        if self.lengths is not None:
            record.forget_padding(self.lengths)
        record.append(self.rows.chunk(self.known, parents, keep))
        if self.lengths is not None:
            value = None if self.rows.value is None else keep(self.rows.value)
            record.replace_keys(keep(self.rows.key), value)


def continuation(growing: GrowingRecord, rows: NewRows) -> Continuation | None:
    """How a call continues a record; None if it does not."""
    if not growing.fits(rows):
        return None
    if rows.cross:
        return _cross_continuation(growing, rows)
    past, recorded = rows.past, growing.record.keys
    if past <= 0:
        return None
    if _lengths_differ(rows):
        return _ragged_continuation(growing, rows)
    before = rows.key[:, :, past - 1]
    if past <= recorded and torch.equal(before, growing.last_key):
        return Continuation(_shifted(rows, recorded - past), past)
    if past == recorded:
        return _beam_continuation(growing, rows, before)
    if past < recorded and torch.equal(before, growing.record.key[:, :, past - 1]):
        return Continuation(rows, past, cropped=True)
    return None


def _cross_continuation(growing: GrowingRecord, rows: NewRows) -> Continuation | None:
    """Cross-attention: later queries attend to the same keys in a later forward."""
    keys = rows.key.shape[2]
    if rows.forward == growing.forward or keys != growing.record.keys:
        return None
    return Continuation(rows, keys) if torch.equal(rows.key[:, :, -1], growing.last_key) else None


def _beam_continuation(
    growing: GrowingRecord, rows: NewRows, before: Tensor
) -> Continuation | None:
    """Sequences that changed places: each one continues the one whose last key it has."""
    same = (before[:, None] == growing.last_key[None]).flatten(2).all(dim=-1)  # (now, earlier)
    if not bool(same.any(dim=1).all()):
        return None
    return Continuation(rows, rows.past, order=same.int().argmax(dim=1))


def _lengths_differ(rows: NewRows) -> bool:
    """True if the last rows of the sequences stand at different keys."""
    mask = rows.piece.mask
    if mask is None or mask.dense is not None or mask.high.shape[0] == 1:
        return False
    return int(mask.high[:, -1].min()) != int(mask.high[:, -1].max())


def _ragged_continuation(growing: GrowingRecord, rows: NewRows) -> Continuation | None:
    """Sequences of different lengths: the new keys of each follow its own last one."""
    mask, record, keys = rows.piece.mask, growing.record, rows.key.shape[2]
    assert mask is not None
    past = mask.high[:, -1] - rows.query.shape[2]
    if keys < record.keys or int(past.min()) < 1 or int(past.max()) > record.keys:
        return None
    sequence = torch.arange(rows.key.shape[0], device=past.device)
    if not torch.equal(rows.key[sequence, :, past - 1], record.key[sequence, :, past - 1]):
        return None
    return Continuation(rows, keys, lengths=past)


def _shifted(rows: NewRows, dropped: int) -> NewRows:
    """The rows of a sliding cache: its first key is not the first of the text."""
    if dropped == 0:
        return rows
    piece = rows.piece
    keys, mask, bias = piece.keys + dropped, piece.mask, piece.bias
    if mask is None:
        low = torch.zeros(1, piece.rows, dtype=torch.long, device=rows.query.device)
        mask = RowMask(low, torch.full_like(low, piece.keys))
    in_front = (dropped, 0)
    shifted = RowMask(
        low=mask.low + dropped,
        high=mask.high + dropped,
        real=_padded(mask.real, in_front, fill=True),
        dense=_padded(mask.dense, in_front, fill=False),
    )
    if bias is not None and bias.numbers is not None and bias.numbers.shape[3] != 1:
        bias = replace(bias, numbers=torch.nn.functional.pad(bias.numbers, in_front))
    elif bias is not None and bias.diagonals is not None:
        bias = replace(bias, origin=bias.origin - dropped)
    return replace(rows, piece=RowRules(piece.rows, keys, shifted, bias))


def _padded(flags: Tensor | None, space: tuple[int, int], *, fill: bool) -> Tensor | None:
    return None if flags is None else torch.nn.functional.pad(flags, space, value=fill)


class Runs:
    """The records of every run; a run is a forward with all the calls that continue it."""

    def __init__(self) -> None:
        self.records: list[LayerRecord] = []  # of the latest run; this very list grows
        self.earlier: list[list[LayerRecord]] = []
        self._growing: dict[tuple[str, int], GrowingRecord] = {}  # by path and occurrence
        self.first_forward = 0  # in which the latest run began
        self._parents: dict[int, Parents] = {}  # by forward

    def add(
        self, path: str, rows: NewRows, keep: Keep, new_record: Callable[[int], LayerRecord | None]
    ) -> LayerRecord | None:
        """Append a call to the record that it continues, or begin one.

        ``new_record`` makes it from the call's occurrence: how many layers of this forward shared
        the module before. It returns None for a layer that is not wanted.
        """
        parents = self._parents.setdefault(rows.forward, Parents())
        occurrence = 0
        while (growing := self._growing.get((path, occurrence))) is not None:
            found = continuation(growing, rows)
            if found is not None:
                found.append_to(growing.record, parents, keep)
                growing.remember(rows)
                return growing.record
            if growing.forward != rows.forward:
                self._begin_run(rows.forward)
                occurrence = -1
            occurrence += 1
        record = new_record(occurrence)
        if record is not None:
            self._growing[path, occurrence] = GrowingRecord(record, rows)
            self.records.append(record)
        return record

    def parents_of(self, forward: int) -> Int[Tensor, " batch"] | None:
        """The earlier sequence that each sequence of a forward continues; None: its own."""
        return self._parents[forward].order if forward in self._parents else None

    def forget(self) -> None:
        """Keep nothing of any run."""
        for held in (self.records, self.earlier, self._growing, self._parents):
            held.clear()

    def _begin_run(self, forward: int) -> None:
        self.first_forward = forward
        self.earlier.append(list(self.records))
        self.records.clear()
        self._growing.clear()
