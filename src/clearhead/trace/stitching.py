"""Several calls of one layer, stitched into one record: the prompt, then every step.

Whether a call goes on from what is recorded is seen from its keys: the key before the first new one
must be, bit for bit, the last one recorded (of some sequence: beams change places). Everything else
is another layer that shares the module (a second call within one forward), or a new run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from clearhead.trace.chunks import Chunk, Parents
from clearhead.trace.record import LayerRecord
from clearhead.trace.row_rules import Piece, RowMask


@dataclass(frozen=True)
class Call:
    """One call, ready to be kept; keys and values are all that the call had."""

    query: Tensor
    key: Tensor
    value: Tensor | None
    logsum: Tensor
    output: Tensor | None
    piece: Piece
    cross: bool
    forward: int  # the model's forward in which it came

    @property
    def past(self) -> int:
        """How many keys stand before those of the new rows."""
        return self.key.shape[2] - self.query.shape[2]


class Thread:
    """One record that is still growing."""

    def __init__(self, record: LayerRecord, call: Call) -> None:
        self.record = record
        self.remember(call)

    def remember(self, call: Call) -> None:
        """What the next call is compared with."""
        self.forward = call.forward
        self.last = call.key[:, :, -1].clone()


Keep = Callable[[Tensor], Tensor]


def goes_on(thread: Thread, call: Call, parents: Parents) -> Callable[[Keep], None] | None:
    """What to do if a call goes on from a record; None if it does not."""
    record = thread.record
    if call.query.shape[:2] != record.shape[:2] or call.key.shape[:2] != thread.last.shape[:2]:
        return None
    if call.key.shape[3] != thread.last.shape[2] or call.key.dtype != thread.last.dtype:
        return None
    if call.cross:
        same = call.key.shape[2] == record.keys and torch.equal(call.key[:, :, -1], thread.last)
        if not same or call.forward == thread.forward:
            return None
        return lambda keep: record.append(_chunk(call, call.key.shape[2], parents, keep))
    past, known = call.past, record.keys
    if past <= 0:
        return None
    if _uneven(call):
        return _ragged(thread, call, parents)
    before = call.key[:, :, past - 1]
    if past <= known and torch.equal(before, thread.last):
        return lambda keep: record.append(_chunk(_shifted(call, known - past), past, parents, keep))
    if past == known:
        return _beams(thread, call, before, parents)
    if past < known and torch.equal(before, record.key[:, :, past - 1]):
        return lambda keep: _rewound(record, call, parents, keep)
    return None


def _uneven(call: Call) -> bool:
    """Whether the last rows of the sequences stand at different keys."""
    mask = call.piece.mask
    if mask is None or mask.dense is not None or mask.high.shape[0] == 1:
        return False
    return int(mask.high[:, -1].min()) != int(mask.high[:, -1].max())


def _beams(
    thread: Thread, call: Call, before: Tensor, parents: Parents
) -> Callable[[Keep], None] | None:
    """Sequences that changed places: each one goes on from the one whose last key it has."""
    same = (before[:, None] == thread.last[None]).flatten(2).all(dim=-1)  # (now, earlier)
    if not bool(same.any(dim=1).all()):
        return None
    parents.order = same.int().argmax(dim=1)
    return lambda keep: thread.record.append(_chunk(call, call.past, parents, keep))


def _ragged(thread: Thread, call: Call, parents: Parents) -> Callable[[Keep], None] | None:
    """Sequences of different lengths: each one's new keys follow its own last one."""
    mask, record = call.piece.mask, thread.record
    assert mask is not None
    past = mask.high[:, -1] - call.query.shape[2]
    if call.key.shape[2] < record.keys or int(past.min()) < 1 or int(past.max()) > record.keys:
        return None
    sequence = torch.arange(call.key.shape[0], device=past.device)
    if not torch.equal(call.key[sequence, :, past - 1], record.key[sequence, :, past - 1]):
        return None

    def append(keep: Keep) -> None:
        record.forget_padding(past)
        record.append(_chunk(call, call.key.shape[2], parents, keep))
        value = None if call.value is None else keep(call.value)
        record.replace_keys(keep(call.key), value)

    return append


def _rewound(record: LayerRecord, call: Call, parents: Parents, keep: Keep) -> None:
    """The cache was cropped: what came after is forgotten."""
    record.truncate(max(record.rows - (record.keys - call.past), 0), call.past)
    record.append(_chunk(call, call.past, parents, keep))


def _chunk(call: Call, known: int, parents: Parents, keep: Keep) -> Chunk:
    """What a call adds: its rows, and its keys from ``known`` on."""
    value = None if call.value is None else keep(call.value[:, :, known:])
    output = None if call.output is None else keep(call.output)
    return Chunk(
        keep(call.query),
        keep(call.key[:, :, known:]),
        value,
        keep(call.logsum),
        output,
        call.piece,
        parents,
    )


def _shifted(call: Call, dropped: int) -> Call:
    """The call of a sliding cache: its first key is not the first of the text."""
    if dropped == 0:
        return call
    piece = call.piece
    keys, mask, bias = piece.keys + dropped, piece.mask, piece.bias
    if mask is None:
        low = torch.zeros(1, piece.rows, dtype=torch.long, device=call.query.device)
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
    return replace(call, piece=Piece(piece.rows, keys, shifted, bias))


def _padded(flags: Tensor | None, space: tuple[int, int], *, fill: bool) -> Tensor | None:
    return None if flags is None else torch.nn.functional.pad(flags, space, value=fill)


class Runs:
    """The records of every run; a run is a forward with all that goes on from it."""

    def __init__(self) -> None:
        self.records: list[LayerRecord] = []  # of the latest run; this very list grows
        self.earlier: list[list[LayerRecord]] = []
        self._threads: dict[tuple[str, int], Thread] = {}
        self.first_forward = 0  # in which the latest run began
        self._parents: dict[int, Parents] = {}  # by forward

    def add(
        self, path: str, call: Call, keep: Keep, record_of: Callable[[int], LayerRecord | None]
    ) -> LayerRecord | None:
        """Keep a call: append it to its record, or begin one by ``record_of(occurrence)``."""
        parents = self._parents.setdefault(call.forward, Parents())
        occurrence = 0
        while (thread := self._threads.get((path, occurrence))) is not None:
            append = goes_on(thread, call, parents)
            if append is not None:
                append(keep)
                thread.remember(call)
                return thread.record
            if thread.forward != call.forward:
                self._begin_run(call.forward)
                occurrence = -1
            occurrence += 1
        record = record_of(occurrence)
        if record is not None:
            self._threads[path, occurrence] = Thread(record, call)
            self.records.append(record)
        return record

    def parents_of(self, forward: int) -> Tensor | None:
        """Which sequence before it each sequence of a forward went on from; None: its own."""
        return self._parents[forward].order if forward in self._parents else None

    def forget(self) -> None:
        """Keep nothing of any run."""
        for held in (self.records, self.earlier, self._threads, self._parents):
            held.clear()

    def _begin_run(self, forward: int) -> None:
        self.first_forward = forward
        self.earlier.append(list(self.records))
        self.records.clear()
        self._threads.clear()
