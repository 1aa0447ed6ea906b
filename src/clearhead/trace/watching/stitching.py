"""Several calls of one layer, stitched into one record: the prompt, then every step.

A call continues a record if its keys say so: the key before the first new one must be, bit for bit,
the last recorded one (of some sequence: beams change places). Any other call is another layer that
shares the module (a second call within one forward), or it begins a new run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Int
from torch import Tensor

from clearhead.trace.chunks import Parents
from clearhead.trace.record import LayerRecord
from clearhead.trace.row_rules import RowMask, RowRules
from clearhead.trace.watching.new_rows import Keep, NewRows


class GrowingRecord:
    """A record to which later calls may add rows, and the last call that did."""

    def __init__(self, record: LayerRecord, rows: NewRows) -> None:
        self.record = record
        self.oldest = rows.key[:, :, 0].clone()
        self.remember(rows)

    def remember(self, rows: NewRows) -> None:
        """Keep what the next call is compared with."""
        self.forward = rows.forward
        self.last_key = rows.key[:, :, -1].clone()

    def fits(self, rows: NewRows) -> bool:
        """True if the call has the shape, dtype, scale and softcap of this record."""
        facts = self.record.facts
        if rows.scale is not None and not math.isclose(rows.scale, facts.scale, rel_tol=SAME):
            return False
        if rows.scale is not None and rows.softcap != facts.softcap:
            return False
        batch_and_heads = (rows.query.shape[:2], rows.key.shape[:2], rows.key.shape[3])
        return rows.key.dtype == self.last_key.dtype and batch_and_heads == (
            self.record.shape[:2],
            self.last_key.shape[:2],
            self.last_key.shape[2],
        )


SAME = 1e-7  # scales that differ by less are equal but for rounding


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
    if _lengths_differ(rows) and not _only_adds_keys(growing, rows):
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
    """True if the earlier keys of a call are those of the record, all of them: two texts may begin
    and end in the same tokens, and blocks of keys may be put together anew."""
    if dropped == 0 and not torch.equal(rows.key[:, :, 0], growing.oldest):
        return False
    return growing.record.has_keys(rows.key[:, :, : rows.past], dropped)


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


def _only_adds_keys(growing: GrowingRecord, rows: NewRows) -> bool:
    """True if a call has all recorded keys as they were: rows may stand at different keys because a
    mask hides the last ones of some."""
    keys = growing.record.keys
    return rows.past >= keys and growing.record.has_keys(rows.key[:, :, :keys])


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
