"""The recorder of one ``watch``: observed calls come in, records are kept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.trace.record import LayerFacts, LayerRecord
from clearhead.trace.row_rules import crop_keys, filled_keys, is_causal
from clearhead.trace.spill import Spill
from clearhead.trace.watching.input_ids import InputIds
from clearhead.trace.watching.layer_filter import LayerFilter
from clearhead.trace.watching.layer_names import LayerNames
from clearhead.trace.watching.log_sum_exp import log_sum_exp
from clearhead.trace.watching.mask_rules import CallRules, RuleCache
from clearhead.trace.watching.module_stack import Coverage, Frame, ModuleStack
from clearhead.trace.watching.observed_call import ObservedCall
from clearhead.trace.watching.stitching import NewRows, Runs
from clearhead.trace.watching.watched import Watched

DROPOUT_NOTE = "weights before dropout"


class Recorder:
    """Keeps the observed calls of one model as records, for one ``watch``."""

    def __init__(
        self, model: nn.Module, wanted: LayerFilter, values: bool, tokenizer: object
    ) -> None:
        self._wanted, self._values, self._tokenizer = wanted, values, tokenizer
        self._stack = ModuleStack(model, self._entered)
        self._names = LayerNames(self._stack.attention)
        self._rules, self._runs, self._spill = RuleCache(), Runs(), Spill()
        self._ids = InputIds(self._names.two_stacks)
        self._coverage = Coverage(self._stack)
        self._latest: dict[str, LayerRecord] = {}  # by path
        self.seen = Watched(self._runs, self._spill, self._coverage)

    def close(self) -> None:
        """Leave the model as it was, and say what was missed."""
        self._stack.close()
        self.seen.missed = self._coverage.missed
        asked = self._wanted.missing(self._names.known(), self._stack.ran)
        if asked and self._names.known():
            known = ", ".join(self._names.known())
            also = f"not in this model: {', '.join(asked)} (there are {known})"
            self.seen.missed = f"{self.seen.missed}; {also}" if self.seen.missed else also
        if self._tokenizer is not None and self._runs.records:
            labels = self._ids.labels(self._tokenizer, self._runs)
            if labels is not None:
                self.seen.labels = labels

    def module(self) -> nn.Module | None:
        """The module that is running, if it belongs to the watched model."""
        place = self._stack.place()
        return None if place is None else place.module

    def refuse(self, reason: str) -> None:
        """Note that a call of the running module cannot be reproduced, and why."""
        place = self._stack.place()
        if place is not None:
            self._coverage.refused[place.path] = reason

    def keep(self, observed: ObservedCall) -> None:
        """Record one call."""
        place = self._stack.place()
        if place is None:
            return  # of some other model
        if torch._C._current_graph_task_id() != -1:
            return  # gradient checkpointing computes the forward again, on the way back
        with torch.no_grad(), torch._C.DisableTorchFunction():
            self._keep(place, observed)

    def _entered(self, path: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self._tokenizer is not None:
            in_encoder = self._names.in_encoder(path)
            self._ids.read(self._stack.forward, in_encoder, args, kwargs)

    def _keep(self, place: Frame, observed: ObservedCall) -> None:
        if observed.repeated and place.path in self._latest:
            _note(self._latest[place.path], [DROPOUT_NOTE] if observed.dropout else [])
            return
        cross = place.cross or observed.cross
        name = self._names.name(place.path, cross, 0)
        self._coverage.seen.add(place.path)
        if not self._wanted.keeps(name, place.path) and not self._wanted.may_repeat:
            return
        chosen = self._wanted.heads_of(name, observed.query.shape[1])
        notes, rows = self._new_rows(observed, cross, chosen)

        def new_record(occurrence: int) -> LayerRecord | None:
            name = self._names.name(place.path, cross, occurrence)
            if not self._wanted.keeps(name, place.path):
                return None
            return self._record(name, place, observed, rows, chosen, notes)

        record = self._runs.add(place.path, rows, self._kept, new_record)
        if record is not None:
            self._latest[place.path] = record
            if record.facts.causal and not is_causal(rows.piece):
                record.facts = replace(record.facts, causal=False)
            _note(record, notes)

    def _new_rows(
        self, observed: ObservedCall, cross: bool, chosen: list[int] | None
    ) -> tuple[list[str], NewRows]:
        """The call as it is recorded: its mask as rules, a log-sum-exp, only the chosen heads."""
        rules = self._rules.of(observed)
        logsum = log_sum_exp(observed) if observed.logsum is None else observed.logsum.detach()
        query, logsum = _with_uniform_rows(
            observed.query.detach(), logsum, rules, observed.sizes[1]
        )
        piece = rules.piece
        key, value = observed.key.detach(), observed.value
        filled = None if cross else filled_keys(piece)
        if filled is not None:
            key, piece = key[:, :, :filled], crop_keys(piece, filled)
            value = None if value is None else value[:, :, :filled]
        output = observed.output
        if chosen is not None:
            group = query.shape[1] // key.shape[1]
            shared = [head // group for head in chosen]
            query, logsum, piece = query[:, chosen], logsum[:, chosen], piece.heads(chosen)
            key, value = key[:, shared], None if value is None else value[:, shared]
            output = None if output is None else output[:, chosen]
        if not self._values:
            value = output = None
        rows = NewRows(
            query,
            key,
            None if value is None else value.detach(),
            logsum,
            None if output is None else output.detach(),
            piece,
            cross,
            self._stack.forward,
        )
        notes = [*rules.notes, *([DROPOUT_NOTE] if observed.dropout else [])]
        return notes, rows

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
            dtype=observed.query.dtype,
            note="; ".join(notes),
        )
        sinks = observed.sinks
        if sinks is not None:
            sinks = sinks.detach().clone() if chosen is None else sinks.detach()[chosen]
        return LayerRecord(
            facts,
            self._kept(rows.query),
            self._kept(rows.key),
            self._kept(rows.logsum),
            value=None if rows.value is None else self._kept(rows.value),
            output=None if rows.output is None else self._kept(rows.output),
            sinks=sinks,
            pieces=[rows.piece],
            head_numbers=None if chosen is None else tuple(chosen),
        )

    def _kept(self, tensor: Tensor) -> Tensor:
        """The tensor itself if its memory is its own and nobody changes it, otherwise a copy."""
        return self._spill.keep(tensor, owned=_is_safe(tensor))


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


def _with_uniform_rows(
    query: Tensor, logsum: Tensor, rules: CallRules, keys: int
) -> tuple[Tensor, Tensor]:
    """Rows in which a finite number masks every key: the model attends to all keys equally."""
    if rules.uniform is None:
        return query, logsum
    uniform = rules.uniform.expand(query.shape[0], -1)[:, None]  # (batch, 1, query)
    log_keys = torch.tensor(float(keys), dtype=logsum.dtype, device=logsum.device).log()
    return query.masked_fill(uniform[..., None], 0.0), torch.where(uniform, log_keys, logsum)
