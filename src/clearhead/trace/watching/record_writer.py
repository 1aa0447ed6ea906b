"""Writes observed calls into records: new ones, or those that they continue."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from torch import Tensor

from clearhead.trace.chunks import LaterSums
from clearhead.trace.record import LayerFacts, LayerRecord
from clearhead.trace.row_rules import RowRules, is_causal
from clearhead.trace.spill import Spill
from clearhead.trace.watching.layer_filter import LayerFilter
from clearhead.trace.watching.layer_names import LayerNames
from clearhead.trace.watching.log_sum_exp import later_sums
from clearhead.trace.watching.mask_rules import RuleCache
from clearhead.trace.watching.module_stack import Frame
from clearhead.trace.watching.new_rows import NewRows, new_rows
from clearhead.trace.watching.observed_call import ObservedCall
from clearhead.trace.watching.runs import Runs

DROPOUT_NOTE = "weights before dropout"


class Prepared(NamedTuple):
    """A call as it is about to be recorded."""

    rows: NewRows
    chosen: list[int] | None  # heads
    notes: list[str]


class RecordWriter:
    """The records of one watch: what is kept of a call, under which name, in which run."""

    def __init__(
        self,
        names: LayerNames,
        wanted: LayerFilter,
        runs: Runs,
        spill: Spill,
        values: bool,
        settle: Callable[[], None],
    ) -> None:
        self._names, self._wanted, self._values = names, wanted, values
        self._runs, self._spill, self._settle = runs, spill, settle
        self.rules = RuleCache()
        self._borrowed: list[tuple[Tensor, int, str]] = []  # kept without a copy, and their path
        self._causal: tuple[RowRules | None, bool] = (None, False)  # the latest rules
        self._path = ""  # of the module whose call is being written

    def prepared(self, place: Frame, observed: ObservedCall, cross: bool, forward: int) -> Prepared:
        """A call as it would be recorded: its mask as rules, only the chosen heads."""
        occurrence = self._runs.occurrence(place.path, forward)
        name = self._names.name(place.path, cross, occurrence)
        chosen = self._wanted.heads_of(name, observed.query.shape[1])
        rules = self.rules.of(observed)
        rows = new_rows(observed, rules, cross, chosen, forward, values=self._values)
        notes = [*rules.notes, *([DROPOUT_NOTE] if observed.dropout else [])]
        notes += [observed.note] if observed.note else []
        return Prepared(rows, chosen, notes)

    def add(self, place: Frame, observed: ObservedCall, cross: bool, prepared: Prepared) -> None:
        """Append a call to the record that it continues, or begin one."""
        rows, chosen, notes = prepared
        self._path = place.path

        def new_record(occurrence: int) -> LayerRecord | None:
            name = self._names.name(place.path, cross, occurrence)
            if not self._wanted.keeps(name, place.path):
                return None
            return self._record(name, place, observed, rows, chosen, notes)

        record = self._runs.add(place.path, rows, self._kept, new_record)
        if record is not None:
            if record.facts.causal and not self._is_causal(rows.piece):
                record.facts = replace(record.facts, causal=False)
            _note(record, notes)

    def written_over(self) -> set[str]:
        """Paths of modules whose tensors, kept as they were, are not what they were any more."""
        changed = {path for tensor, version, path in self._borrowed if tensor._version != version}
        self._borrowed.clear()
        return changed

    def _is_causal(self, piece: RowRules) -> bool:
        """Layers share their rules: one answer does for all of them."""
        if piece is not self._causal[0]:
            self._causal = (piece, is_causal(piece))
        return self._causal[1]

    def _record(
        self,
        name: str,
        place: Frame,
        observed: ObservedCall,
        rows: NewRows,
        chosen: list[int] | None,
        notes: list[str],
    ) -> LayerRecord:
        value = observed.value if observed.value is not None else observed.key
        facts = LayerFacts(
            name=name,
            path=place.path,
            kind="cross" if rows.cross else "self",
            causal=not rows.cross,
            heads=observed.query.shape[1],
            kv_heads=observed.key.shape[1],
            key_dim=observed.query.shape[3],
            value_dim=value.shape[3],
            scale=observed.scale,
            softcap=observed.softcap,
            dtype=observed.dtype or observed.query.dtype,
            note="; ".join(notes),
        )
        sinks = observed.sinks
        if sinks is not None:
            sinks = sinks.detach().clone() if chosen is None else sinks.detach()[chosen]
        query, key, logsum = self._kept(rows.query), self._kept(rows.key), rows.logsum
        if isinstance(logsum, LaterSums):
            logsum = later_sums(query, key, rows.piece, observed)
        else:
            logsum = self._kept(logsum)
        record = LayerRecord(
            facts,
            query,
            key,
            logsum,
            value=None if rows.value is None else self._kept(rows.value),
            output=None if rows.output is None else self._kept(rows.output),
            value_probe=rows.value_probe,
            output_probe=rows.output_probe,
            sinks=sinks,
            pieces=[rows.piece],
            head_numbers=None if chosen is None else tuple(chosen),
        )
        record.settle = self._settle
        return record

    def _kept(self, tensor: Tensor) -> Tensor:
        """The tensor itself if its memory is its own and nobody changes it, otherwise a copy."""
        safe = _is_safe(tensor)
        kept = self._spill.keep(tensor, owned=safe)
        if safe and kept.data_ptr() == tensor.data_ptr() and tensor.numel():
            self._borrowed.append((tensor, tensor._version, self._path))
        return kept


def _note(record: LayerRecord, notes: list[str]) -> None:
    """Add to a record's note what it does not contain yet."""
    new = [note for note in notes if note not in record.facts.note]
    if new:
        said = [record.facts.note] if record.facts.note else []
        record.facts = replace(record.facts, note="; ".join([*said, *new]))


def _is_safe(tensor: Tensor) -> bool:
    """True for a fresh result that owns its memory. Caches change later, slices hold more."""
    if tensor.is_inference() or tensor._version > 0:
        return False
    return tensor.untyped_storage().nbytes() <= 1.25 * tensor.nbytes
