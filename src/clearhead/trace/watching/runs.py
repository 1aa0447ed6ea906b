"""The records of every run: a call continues a record, or begins one, or begins a run."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Int
from torch import Tensor

from clearhead.trace.chunks import Parents
from clearhead.trace.record import LayerRecord
from clearhead.trace.watching.new_rows import Keep, NewRows
from clearhead.trace.watching.stitching import GrowingRecord, continuation


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
            self._growing[path, occurrence] = GrowingRecord(record, rows)
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
