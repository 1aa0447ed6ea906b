"""One watch at work: sightings come in, records are kept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.trace.coverage import Coverage
from clearhead.trace.layer_choice import LayerChoice
from clearhead.trace.layer_names import LayerNames
from clearhead.trace.log_sum import log_sum
from clearhead.trace.mask_rules import RuleBook, Rules
from clearhead.trace.module_stack import Frame, ModuleStack
from clearhead.trace.piece_facts import cut, filled_keys, is_causal
from clearhead.trace.read_ids import ReadIds
from clearhead.trace.record import LayerFacts, LayerRecord
from clearhead.trace.seen import Seen
from clearhead.trace.sighting import Sighting
from clearhead.trace.spill import Spill
from clearhead.trace.stitching import Call, Runs

DROPOUT_NOTE = "weights before dropout"


class Watched(Seen):
    """What a watch saw: the latest run, the earlier ones, and what could not be seen."""

    def __init__(self, runs: Runs, spill: Spill, coverage: Coverage) -> None:
        super().__init__(runs.records, spill=spill)
        self._runs = runs
        self.coverage = coverage

    @property
    def runs(self) -> list[Seen]:
        """Every run, oldest first; the last one is what ``seen`` itself shows."""
        return [*(Seen(list(records), missed=self.missed) for records in self._runs.earlier), self]

    def close(self) -> None:
        """Forget every run, too."""
        super().close()
        self._runs.forget()


class Watching:
    """One watch: takes sightings and keeps them as records."""

    def __init__(
        self, model: nn.Module, choice: LayerChoice, values: bool, tokenizer: object
    ) -> None:
        self._choice, self._values, self._tokenizer = choice, values, tokenizer
        self._stack = ModuleStack(model, self._entered)
        self._names = LayerNames(self._stack.attention)
        self._rules, self._runs, self._spill = RuleBook(), Runs(), Spill()
        self._ids = ReadIds(self._names.two_stacks)
        self._coverage = Coverage(self._stack)
        self._latest: dict[str, LayerRecord] = {}  # by path
        self.seen = Watched(self._runs, self._spill, self._coverage)

    def close(self) -> None:
        """Leave the model as it was, and say what was missed."""
        self._stack.close()
        self.seen.missed = self._coverage.missed
        asked = self._choice.missing(self._names.known(), self._stack.ran)
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
        """A call was there, but it cannot be reproduced."""
        place = self._stack.place()
        if place is not None:
            self._coverage.refused[place.path] = reason

    def keep(self, sighting: Sighting) -> None:
        """Take note of one call."""
        place = self._stack.place()
        if place is None:
            return  # of some other model
        if torch._C._current_graph_task_id() != -1:
            return  # gradient checkpointing computes the forward again, on the way back
        with torch.no_grad(), torch._C.DisableTorchFunction():
            self._keep(place, sighting)

    def _entered(self, path: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self._tokenizer is not None:
            in_encoder = self._names.in_encoder(path)
            self._ids.read(self._stack.forward, in_encoder, args, kwargs)

    def _keep(self, place: Frame, sighting: Sighting) -> None:
        if sighting.repeated and place.path in self._latest:
            _note(self._latest[place.path], [DROPOUT_NOTE] if sighting.dropout else [])
            return
        cross = place.cross or sighting.cross
        name = self._names.name(place.path, cross, 0)
        self._coverage.seen.add(place.path)
        if not self._choice.takes(name, place.path) and not self._choice.may_repeat:
            return
        chosen = self._choice.heads(name, sighting.query.shape[1])
        notes, call = self._call(sighting, cross, chosen)

        def record_of(occurrence: int) -> LayerRecord | None:
            name = self._names.name(place.path, cross, occurrence)
            if not self._choice.takes(name, place.path):
                return None
            return self._record(name, place, sighting, call, chosen, notes)

        record = self._runs.add(place.path, call, self._kept, record_of)
        if record is not None:
            self._latest[place.path] = record
            if record.facts.causal and not is_causal(call.piece):
                record.facts = replace(record.facts, causal=False)
            _note(record, notes)

    def _call(
        self, sighting: Sighting, cross: bool, chosen: list[int] | None
    ) -> tuple[list[str], Call]:
        """The sighting as it is kept: rules for its mask, a log-sum-exp, only the chosen heads."""
        rules = self._rules.of(sighting)
        logsum = log_sum(sighting) if sighting.logsum is None else sighting.logsum.detach()
        query, logsum = _evened(sighting.query.detach(), logsum, rules, sighting.sizes[1])
        piece = rules.piece
        key, value = sighting.key.detach(), sighting.value
        filled = None if cross else filled_keys(piece)
        if filled is not None:
            key, piece = key[:, :, :filled], cut(piece, filled)
            value = None if value is None else value[:, :, :filled]
        output = sighting.output
        if chosen is not None:
            group = query.shape[1] // key.shape[1]
            shared = [head // group for head in chosen]
            query, logsum, piece = query[:, chosen], logsum[:, chosen], piece.heads(chosen)
            key, value = key[:, shared], None if value is None else value[:, shared]
            output = None if output is None else output[:, chosen]
        if not self._values:
            value = output = None
        call = Call(
            query,
            key,
            None if value is None else value.detach(),
            logsum,
            None if output is None else output.detach(),
            piece,
            cross,
            self._stack.forward,
        )
        notes = [*rules.notes, *([DROPOUT_NOTE] if sighting.dropout else [])]
        return notes, call

    def _record(
        self,
        name: str,
        place: Frame,
        sighting: Sighting,
        call: Call,
        chosen: list[int] | None,
        notes: list[str],
    ) -> LayerRecord:
        value = sighting.value if sighting.value is not None else sighting.key
        facts = LayerFacts(
            name=name,
            path=place.path,
            kind="cross" if call.cross else "self",
            causal=not call.cross,
            heads=sighting.query.shape[1],
            kv_heads=sighting.key.shape[1],
            key_dim=sighting.query.shape[3],
            value_dim=value.shape[3],
            scale=sighting.scale,
            softcap=sighting.softcap,
            dtype=sighting.query.dtype,
            note="; ".join(notes),
        )
        sinks = sighting.sinks
        if sinks is not None:
            sinks = sinks.detach().clone() if chosen is None else sinks.detach()[chosen]
        return LayerRecord(
            facts,
            self._kept(call.query),
            self._kept(call.key),
            self._kept(call.logsum),
            value=None if call.value is None else self._kept(call.value),
            output=None if call.output is None else self._kept(call.output),
            sinks=sinks,
            pieces=[call.piece],
            head_numbers=None if chosen is None else tuple(chosen),
        )

    def _kept(self, tensor: Tensor) -> Tensor:
        """By reference where nobody else changes or wastes its memory, otherwise a copy."""
        return self._spill.keep(tensor, owned=_is_safe(tensor))


def _note(record: LayerRecord, notes: list[str]) -> None:
    """Say in a record's facts what they do not say yet."""
    new = [note for note in notes if note not in record.facts.note]
    if new:
        said = [record.facts.note] if record.facts.note else []
        record.facts = replace(record.facts, note="; ".join([*said, *new]))


def _is_safe(tensor: Tensor) -> bool:
    """A fresh result that owns its memory: caches are written to again, slices hold on to more."""
    if tensor.is_inference() or tensor._version > 0:
        return False
    return tensor.untyped_storage().nbytes() <= 1.25 * tensor.nbytes


def _evened(query: Tensor, logsum: Tensor, rules: Rules, keys: int) -> tuple[Tensor, Tensor]:
    """Rows that a finite number hides wholly: the model spreads them evenly over all keys."""
    if rules.even is None:
        return query, logsum
    even = rules.even.expand(query.shape[0], -1)[:, None]  # (batch, 1, query)
    evenly = torch.tensor(float(keys), dtype=logsum.dtype, device=logsum.device).log()
    return query.masked_fill(even[..., None], 0.0), torch.where(even, evenly, logsum)
