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

from clearhead.trace.chunks import Chunk, LaterSums, Parents
from clearhead.trace.record import LayerRecord
from clearhead.trace.row_rules import RowMask, RowRules

Keep: TypeAlias = Callable[[Tensor], Tensor]  # the same numbers, safe from later changes


@dataclass(frozen=True)
class NewRows:
    """The rows of one attention call, ready to be recorded, with every key that the call had."""

    query: Float[Tensor, "batch head query key_dim"]
    key: Float[Tensor, "batch kv_head key key_dim"]
    value: Float[Tensor, "batch kv_head key value_dim"] | None
    logsum: Float[Tensor, "batch head query"] | LaterSums
    output: Float[Tensor, "batch head query value_dim"] | None
    piece: RowRules
    cross: bool
    forward: int  # the number of the model's forward in which the call ran
    value_probe: Float[Tensor, "batch kv_head key probe"] | None = None
    output_probe: Float[Tensor, "batch head query probe"] | None = None

    @property
    def past(self) -> int:
        """The number of keys before those of the new rows."""
        return self.key.shape[2] - self.query.shape[2]

    @property
    def joins(self) -> bool:
        """True if its rules are those of plain rows, to which later rows are simply added."""
        mask = self.piece.mask
        return self.piece.bias is None and (mask is None or mask.dense is None)

    def chunk(self, known: int, parents: Parents, keep: Keep) -> Chunk:
        """The part that a record does not have yet: the rows, and the keys from ``known`` on."""
        value = None if self.value is None else keep(self.value[:, :, known:])
        output = None if self.output is None else keep(self.output)
        probe = self.value_probe
        sums = self.logsum.tensor() if isinstance(self.logsum, LaterSums) else self.logsum
        return Chunk(
            keep(self.query),
            keep(self.key[:, :, known:]),
            value,
            keep(sums),
            output,
            self.piece,
            parents,
            None if probe is None else probe[:, :, known:],
            self.output_probe,
        )


class GrowingRecord:
    """A record to which later calls may add rows, and the last call that did."""

    def __init__(self, record: LayerRecord, rows: NewRows, *, leads: bool = True) -> None:
        self.record = record
        self.leads = leads  # the first layer of its run: it tells sequences apart for all of them
        self.oldest = rows.key[:, :, 0].clone()
        self.remember(rows)

    def remember(self, rows: NewRows) -> None:
        """Keep what the next call is compared with."""
        self.forward = rows.forward
        self.last_key = rows.key[:, :, -1].clone()

    def first_key(self, dropped: int) -> Tensor | None:
        """The oldest key that a call must still have; None where comparing would cost too much."""
        return self.oldest if dropped == 0 else None

    def fits(self, rows: NewRows) -> bool:
        """True if the call has the shape and dtype of this record."""
        batch_and_heads = (rows.query.shape[:2], rows.key.shape[:2], rows.key.shape[3])
        return rows.key.dtype == self.last_key.dtype and batch_and_heads == (
            self.record.shape[:2],
            self.last_key.shape[:2],
            self.last_key.shape[2],
        )


class PassedOver:
    """The calls of a layer that is not wanted: counted, so that later ones keep their names."""

    def __init__(self, rows: NewRows) -> None:
        self.forward, self._last_key = rows.forward, rows.key[:, :, -1].clone()

    def takes(self, key: Tensor, queries: int, forward: int) -> bool:
        """True if a call is one of this layer: of another forward, or going on in the same."""
        if forward == self.forward:
            before = key[:, :, key.shape[2] - queries - 1]
            goes_on = key.shape[2] > queries and before.shape == self._last_key.shape
            if not goes_on or not torch.equal(before, self._last_key):
                return False
        self.forward, self._last_key = forward, key[:, :, -1].clone()
        return True


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
            record.replace_keys(keep(self.rows.key), value, self.rows.value_probe)


def continuation(growing: GrowingRecord, rows: NewRows) -> Continuation | None:
    """How a call continues a record; None if it does not."""
    if not growing.fits(rows):
        return None
    if rows.cross or _same_keys(growing, rows):
        return _cross_continuation(growing, rows)
    past, recorded = rows.past, growing.record.keys
    if past <= 0:
        return None
    if _lengths_differ(rows):
        return _ragged_continuation(growing, rows)
    before = rows.key[:, :, past - 1]
    dropped = recorded - past
    goes_on = dropped >= 0 and torch.equal(before, growing.last_key)
    if goes_on and _same_past(growing, rows, dropped):
        return Continuation(_shifted(rows, dropped), past)
    if past == recorded:
        return _beam_continuation(growing, rows)
    may_crop = dropped > 0 and rows.forward != growing.forward and growing.record.facts.causal
    if may_crop and torch.equal(rows.key[:, :, :past], growing.record.key[:, :, :past]):
        return Continuation(rows, past, cropped=True)
    return None


def _same_keys(growing: GrowingRecord, rows: NewRows) -> bool:
    """True if the call has the very keys of the record and fewer or more queries than keys: it is
    cross-attention, whatever the module is called."""
    keys = rows.key.shape[2]
    if keys != growing.record.keys or rows.query.shape[2] == keys:
        return False
    return torch.equal(rows.key[:, :, -1], growing.last_key)


def _same_past(growing: GrowingRecord, rows: NewRows, dropped: int) -> bool:
    """True if the earlier keys of a call are those of the record: the first ones, and with several
    sequences all of them, as two beams may have the same last token."""
    first = growing.first_key(dropped)
    if first is not None and not torch.equal(rows.key[:, :, 0], first):
        return False
    if rows.key.shape[0] == 1 or not growing.leads:
        return True
    known = growing.record.key[:, :, dropped:]
    return torch.equal(rows.key[:, :, : rows.past], known)


def _cross_continuation(growing: GrowingRecord, rows: NewRows) -> Continuation | None:
    """Cross-attention: later queries attend to the same keys in a later forward."""
    keys = rows.key.shape[2]
    if rows.forward == growing.forward or keys != growing.record.keys:
        return None
    same = torch.equal(rows.key, growing.record.key)
    return Continuation(rows, keys) if same else None


def _beam_continuation(growing: GrowingRecord, rows: NewRows) -> Continuation | None:
    """Sequences that changed places: each one continues the one whose keys it has."""
    now, before = rows.key[:, :, : rows.past], growing.record.key
    order = []
    for sequence in now:
        same = (before == sequence).flatten(1).all(dim=1)
        if not bool(same.any()):
            return None
        order.append(int(same.int().argmax()))
    return Continuation(rows, rows.past, order=torch.tensor(order, device=rows.key.device))


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

    def __init__(self, most: int | None = None) -> None:
        self._most = most  # runs that are kept; None: all
        self.dropped = 0  # earlier runs that were not kept
        self.records: list[LayerRecord] = []  # of the latest run; this very list grows
        self.earlier: list[list[LayerRecord]] = []
        self._growing: dict[tuple[str, int], GrowingRecord] = {}  # by path and occurrence
        self._passed: dict[tuple[str, int], PassedOver] = {}
        self.first_forward = 0  # in which the latest run began
        self._parents: dict[int, Parents] = {}  # by forward
        self._forked = -1  # the forward in which a cropped run was copied last

    def add(
        self, path: str, rows: NewRows, keep: Keep, new_record: Callable[[int], LayerRecord | None]
    ) -> LayerRecord | None:
        """Append a call to the record that it continues, or begin one.

        ``new_record`` makes it from the call's occurrence: how many layers of this forward shared
        the module before. It returns None for a layer that is not wanted.
        """
        parents = self._parents.setdefault(rows.forward, Parents())
        occurrence = 0
        while True:
            passed = self._passed.get((path, occurrence))
            if passed is not None:
                if passed.takes(rows.key, rows.query.shape[2], rows.forward):
                    return None
                occurrence += 1
                continue
            growing = self._growing.get((path, occurrence))
            if growing is None:
                break
            found = continuation(growing, rows)
            if found is not None:
                if found.cropped:
                    self._fork(rows.forward)
                    growing = self._growing[path, occurrence]
                found.append_to(growing.record, parents, keep)
                growing.remember(rows)
                return growing.record
            if growing.forward != rows.forward:
                self._begin_run(rows.forward)
                occurrence = -1
            occurrence += 1
        record = new_record(occurrence)
        if record is not None:
            self._growing[path, occurrence] = GrowingRecord(record, rows, leads=not self.records)
            self.records.append(record)
        else:
            self._passed[path, occurrence] = PassedOver(rows)
        return record

    def passes(self, path: str, key: Tensor, queries: int, forward: int) -> bool:
        """True if a call belongs to a layer that is not wanted: nothing need be computed for it."""
        occurrence = 0
        while (passed := self._passed.get((path, occurrence))) is not None:
            if passed.takes(key.detach(), queries, forward):
                return True
            occurrence += 1
        return False

    def occurrence(self, path: str, forward: int) -> int:
        """Which call of a module in this forward the next one is, by those that there were."""
        number = 0
        while True:
            held = self._growing.get((path, number)) or self._passed.get((path, number))
            if held is None or held.forward != forward:
                return number
            number += 1

    def grows(self, path: str) -> bool:
        """True if the latest run has one record of a module, which later calls may continue."""
        known = (path, 0) in self._growing
        return known and (path, 1) not in self._growing and (path, 1) not in self._passed

    def goes_on(self, path: str, rows: NewRows) -> bool:
        """True if a call continues the record of a module, and nothing else changes."""
        growing = self._growing.get((path, 0))
        found = None if growing is None else continuation(growing, rows)
        if found is None or found.cropped:
            return False
        return found.order is None and found.lengths is None

    def parents_of(self, forward: int) -> Int[Tensor, " batch"] | None:
        """The earlier sequence that each sequence of a forward continues; None: its own."""
        return self._parents[forward].order if forward in self._parents else None

    def drop(self, path: str) -> None:
        """Forget what was recorded of a module in the latest run."""
        self.records[:] = [record for record in self.records if record.facts.path != path]
        self._growing = {name: held for name, held in self._growing.items() if name[0] != path}

    def forget(self) -> None:
        """Keep nothing of any run."""
        for held in (self.records, self.earlier, self._growing, self._passed, self._parents):
            held.clear()

    def _fork(self, forward: int) -> None:
        """A cache was cropped: the run so far stays as it is, and a copy of it goes on."""
        if self._forked == forward:
            return
        self._forked = forward
        for growing in self._growing.values():
            growing.record = growing.record.copy()
        held = {growing.record.facts.name: growing.record for growing in self._growing.values()}
        self._keep_run([held.get(record.facts.name, record) for record in self.records])

    def _keep_run(self, records: list[LayerRecord]) -> None:
        """The latest run becomes an earlier one; these records are the latest now."""
        self.earlier.append(list(self.records))
        while self._most is not None and len(self.earlier) >= self._most:
            self.earlier.pop(0)
            self.dropped += 1
        self.records[:] = records

    def _begin_run(self, forward: int) -> None:
        self.first_forward = forward
        self._keep_run([])
        self._growing.clear()
