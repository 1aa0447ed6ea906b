"""The recorder of one ``watch``: observed calls come in, records are kept."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from clearhead.errors import InputError
from clearhead.trace.chunks import LaterSums
from clearhead.trace.probes import project
from clearhead.trace.record import LayerFacts, LayerRecord
from clearhead.trace.row_rules import RowRules, crop_keys, filled_keys, is_causal
from clearhead.trace.spill import Spill
from clearhead.trace.watching.coverage import Coverage
from clearhead.trace.watching.doors.happened import forget_sizes
from clearhead.trace.watching.doors.unfused import follow_steps
from clearhead.trace.watching.input_ids import InputIds
from clearhead.trace.watching.layer_filter import LayerFilter
from clearhead.trace.watching.layer_names import LayerNames
from clearhead.trace.watching.log_sum_exp import later_sums, log_sum_exp, plain_sums
from clearhead.trace.watching.mask_rules import CallRules, RuleCache
from clearhead.trace.watching.module_stack import Frame, ModuleStack
from clearhead.trace.watching.observed_call import ObservedCall
from clearhead.trace.watching.sample_check import checked, formula_weights, matches_model
from clearhead.trace.watching.step_buffer import Joiner, Step, StepBuffer, by_layer
from clearhead.trace.watching.stitching import NewRows, Runs
from clearhead.trace.watching.watched import Watched
from clearhead.trace.watching.watchers import (
    add_watcher,
    is_observing,
    observe,
    remove_watcher,
    watchers,
)

SHOWN_NAMES = 12  # of layers, in an error
DROPOUT_NOTE = "weights before dropout"
WRITTEN_OVER = "its queries or keys were written over later in the same forward"


class Prepared(NamedTuple):
    """A call as it is about to be recorded."""

    rows: NewRows
    chosen: list[int] | None  # heads
    notes: list[str]


class Recorder:
    """Keeps the observed calls of one model as records, for one ``watch``."""

    def __init__(
        self,
        model: nn.Module,
        wanted: LayerFilter,
        values: bool,
        tokenizer: object,
        runs: int | None = None,
    ) -> None:
        self._wanted, self._values, self._tokenizer = wanted, values, tokenizer
        self.open = True
        self.fault: InputError | None = None  # raised when the block ends, not in the model
        self._stack = ModuleStack(
            model,
            self._entered,
            follow_steps,
            self._is_here,
            self._ran_elsewhere,
        )
        self._names = LayerNames(self._stack.attention)
        self._rules, self._runs, self._spill = RuleCache(), Runs(runs), Spill()
        self._ids = InputIds(self._names.two_stacks)
        self._coverage = Coverage(self._stack)
        self._borrowed: list[tuple[Tensor, int, str]] = []  # kept without a copy, and their path
        self._causal: tuple[RowRules | None, bool] = (None, False)  # the latest rules
        self._steps = StepBuffer()
        self._settle = _settling(self)
        self.seen = Watched(self._runs, self._spill, self._coverage, self._settle)

    def begin(self) -> None:
        """Be notified of the calls of this context."""
        add_watcher(self)

    def close(self) -> None:
        """Leave the model as it was, and say what was missed."""
        self.settle()
        self._count_leftovers()
        remove_watcher(self)
        self._stack.close()
        self.open = False
        self._check_borrowed()
        self.seen.missed = self._coverage.missed
        self._refuse_unknown_layers()
        if self._tokenizer is not None and self._runs.records:
            labels = self._ids.labels(self._tokenizer, self._runs)
            if labels is not None:
                self.seen.labels = labels

    def _refuse_unknown_layers(self) -> None:
        known = self._names.known()
        asked = self._wanted.missing(known, self._stack.ran)
        if asked and known:
            names = (
                known if len(known) <= SHOWN_NAMES else [*known[: SHOWN_NAMES - 1], "…", known[-1]]
            )
            self.fault = self.fault or InputError(
                f"not in this model: {', '.join(asked)} (there are {', '.join(names)}).",
                hint="layers are numbers, such names, or paths of modules.",
            )

    def place(self) -> Frame | None:
        """Where in the model a call comes from that runs now; None: from elsewhere."""
        return self._stack.place()

    def module(self) -> nn.Module | None:
        """The module that is running, if it belongs to the watched model."""
        place = self._stack.place()
        return None if place is None else place.module

    def refuse(self, reason: str, place: Frame | None = None) -> None:
        """Note that a call of the running module cannot be reproduced, and why."""
        place = self._stack.place() if place is None else place
        if place is not None:
            self._coverage.refused[place.path] = reason

    def explain(self, reason: str) -> None:
        """Say why the running module's attention may not be seen, should it not be."""
        place = self._stack.place()
        if place is not None:
            self._coverage.why[place.path] = reason

    def happened(self) -> None:
        """A product, a softmax and a product ran, whoever observed it."""
        place = self._stack.place()
        if place is not None and torch._C._current_graph_task_id() == -1:
            self._coverage.happened[place.path] += 1

    def keep(self, observed: ObservedCall) -> None:
        """Record one call."""
        place = observed.places.get(id(self)) if observed.places else None
        place = place or self._stack.place()
        if place is None:
            return  # of some other model
        if torch._C._current_graph_task_id() != -1:
            return  # gradient checkpointing computes the forward again, on the way back
        if observed.inner:
            path = f"{place.path}.{observed.inner}" if place.path else observed.inner
            place = replace(place, path=path)
        try:
            self._keep_or_wait(place, observed)
        except InputError as fault:
            self.fault = self.fault or fault

    def settle(self) -> None:
        """Record the steps that wait."""
        if not self._steps.steps:
            return
        if is_observing():
            self._record_steps()
        else:
            observe(self._record_steps)

    def _keep_or_wait(self, place: Frame, observed: ObservedCall) -> None:
        cross, forward = place.cross or observed.cross, self._stack.forward
        if self._runs.passes(place.path, observed.key, observed.query.shape[2], forward):
            self._count(place, observed)
            return
        if self._runs.grows(place.path) and self._steps.take(place, observed, cross, forward):
            self._count(place, observed)
            if self._steps.full:
                self._record_steps()
            return
        self._record_steps()
        self._keep(place, observed, forward)

    def _record_steps(self) -> None:
        """All steps of a layer as one call, if that holds for every layer; or one by one."""
        steps = self._steps.empty()
        if not steps:
            return
        try:
            joined = self._joined(steps)
        except Exception:  # then each by itself, with its own reason if it fails again
            joined = None
        if joined is not None:
            for step, observed, prepared in joined:
                self._add(step.place, observed, step.cross, prepared)
            return
        for step in steps:
            self._record_step(step)

    def _joined(self, steps: list[Step]) -> list[tuple[Step, ObservedCall, Prepared]] | None:
        joiner, found = Joiner(), []
        for layer in by_layer(steps):
            step, observed = layer[-1], joiner.together(layer)
            self._steps.never.add(step.place.path)  # unless it can be put together
            if observed is None or (observed.unchecked and not matches_model(observed, full=True)):
                return None
            prepared = self._prepared(step.place, observed, step.cross, step.forward)
            if not prepared.rows.joins or not self._runs.goes_on(step.place.path, prepared.rows):
                return None
            self._steps.never.discard(step.place.path)
            found.append((step, observed, prepared))
        return found

    def _record_step(self, step: Step) -> None:
        path = step.place.path
        if not step.unchanged:
            self._coverage.refused[path] = WRITTEN_OVER
            self._runs.drop(path)
            return
        try:
            self._keep(step.place, replace(step.call, counted=True), step.forward)
        except InputError as fault:
            self.fault = self.fault or fault
        except Exception as error:
            self.refuse(f"recording it failed: {type(error).__name__}", step.place)

    def _is_here(self) -> bool:
        return self in watchers()

    def _ran_elsewhere(self, path: str) -> None:
        if not watchers():  # another watch may see it
            self._coverage.elsewhere.add(path)

    def _entered(self, path: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._rules.forget()
        self._count_leftovers()
        self._check_borrowed()
        if self._tokenizer is not None:
            in_encoder = self._names.in_encoder(path)
            self._ids.read(self._stack.forward, in_encoder, args, kwargs)

    def _count_leftovers(self) -> None:
        """A softmax in an attention module is attention, whatever its result was used for."""
        for places in forget_sizes():
            place = places.get(id(self))
            if place is not None and place.attention:
                self._coverage.happened[place.path] += 1

    def _check_borrowed(self) -> None:
        """Tensors that were kept as they are must still be what they were."""
        for tensor, version, path in self._borrowed:
            if tensor._version != version:
                self._coverage.refused[path] = WRITTEN_OVER
                self._runs.drop(path)
        self._borrowed.clear()

    def _count(self, place: Frame, observed: ObservedCall) -> None:
        for part in observed.parts or ({id(self): place},):
            path = part.get(id(self), place).path
            self._coverage.kept[path] += 1
            self._coverage.seen.add(path)

    def _keep(self, place: Frame, given: ObservedCall, forward: int) -> None:
        observed = checked(given)
        if isinstance(observed, str):
            self.refuse(observed, place)
            return
        if not observed.counted:
            self._count(place, observed)
        cross = place.cross or observed.cross
        self._add(place, observed, cross, self._prepared(place, observed, cross, forward))

    def _prepared(
        self, place: Frame, observed: ObservedCall, cross: bool, forward: int
    ) -> Prepared:
        occurrence = self._runs.occurrence(place.path, forward)
        name = self._names.name(place.path, cross, occurrence)
        chosen = self._wanted.heads_of(name, observed.query.shape[1])
        notes, rows = self._new_rows(observed, cross, chosen, forward)
        return Prepared(rows, chosen, notes)

    def _add(self, place: Frame, observed: ObservedCall, cross: bool, prepared: Prepared) -> None:
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

    def _is_causal(self, piece: RowRules) -> bool:
        """Layers share their rules: one answer does for all of them."""
        if piece is not self._causal[0]:
            self._causal = (piece, is_causal(piece))
        return self._causal[1]

    def _new_rows(
        self, observed: ObservedCall, cross: bool, chosen: list[int] | None, forward: int
    ) -> tuple[list[str], NewRows]:
        """The call as it is recorded: its mask as rules, a log-sum-exp, only the chosen heads."""
        rules = self._rules.of(observed)
        piece, query = rules.piece, observed.query.detach()
        logsum: Tensor | LaterSums
        if chosen is None and _follow_from_rules(observed, rules):
            logsum = later_sums(query, observed.key.detach(), piece, observed)
        else:
            sums = log_sum_exp(observed) if observed.logsum is None else observed.logsum.detach()
            query, sums = _with_uniform_rows(query, sums, rules)
            logsum = _with_nan_rows(observed, sums)
        key, value, output = observed.key.detach(), observed.value, observed.output
        value = None if value is None else value.detach()
        whole = cross or (observed.from_start and observed.mask is None)  # no cache to be filled
        filled = None if whole else filled_keys(piece)
        if filled is not None and observed.spelled:  # weights may be 0 where nothing is hidden
            filled = max(filled, _last_written(key))
        if filled is not None:
            key, piece = key[:, :, :filled], crop_keys(piece, filled)
            value = None if value is None else value[:, :, :filled]
        if observed.dropout and value is not None:
            # What the layer hands on is random; its own weights were compared when it ran.
            output = _before_dropout(observed)
        if chosen is not None:
            heads = observed.query.shape[1]
            value, output = (_of_heads(part, chosen, heads) for part in (value, output))
            query, key = _some_heads(query, chosen, heads), _some_heads(key, chosen, heads)
            assert isinstance(logsum, Tensor)
            logsum, piece = logsum[:, chosen], piece.heads(chosen)
        proven = output is not None and value is not None
        rows = NewRows(
            query,
            key,
            value if self._values else None,
            logsum,
            None if output is None or not self._values else output.detach(),
            piece,
            cross,
            forward,
            value_probe=project(value) if proven and value is not None else None,
            output_probe=project(output) if proven and output is not None else None,
        )
        notes = [*rules.notes, *([DROPOUT_NOTE] if observed.dropout else [])]
        notes += [observed.note] if observed.note else []
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


def _settling(recorder: Recorder) -> Callable[[], None]:
    """Its ``settle``, without keeping the recorder: records outlive it."""
    known = weakref.ref(recorder)

    def settle() -> None:
        recorder = known()
        if recorder is not None:
            recorder.settle()

    return settle


def _before_dropout(observed: ObservedCall) -> Tensor:
    """Σ weight · value by the formula, as the layer would have it without dropout."""
    assert observed.value is not None
    weights = formula_weights(observed, range(observed.sizes[0]))
    value = observed.value.detach().to(weights.dtype)
    return weights @ value.repeat_interleave(weights.shape[1] // value.shape[1], dim=1)


def _last_written(key: Tensor) -> int:
    """How many keys there are up to the last that is not zeros, as those of an empty cache are."""
    there = key.ne(0).any(dim=3).any(dim=1).any(dim=0).nonzero()
    return int(there.max()) + 1 if len(there) else 0


def _of_heads(part: Tensor | None, chosen: list[int], heads: int) -> Tensor | None:
    return None if part is None else _some_heads(part, chosen, heads)


def _some_heads(part: Tensor, chosen: list[int], heads: int) -> Tensor:
    """The chosen heads, or the shared ones that they use."""
    group = heads // part.shape[1]
    return part[:, [head // group for head in chosen]]


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


def _follow_from_rules(observed: ObservedCall, rules: CallRules) -> bool:
    """True if the sums can be computed later, from queries, keys and plain rules alone."""
    piece, output = rules.piece, observed.output
    if observed.logsum is not None or rules.uniform is not None or rules.blind:
        return False
    if piece.bias is not None or (piece.mask is not None and piece.mask.dense is not None):
        return False
    return filled_keys(piece) is None and (output is None or not bool(output.isnan().any()))


def _with_nan_rows(observed: ObservedCall, logsum: Tensor) -> Tensor:
    """A row whose own weights are not numbers has a log-sum-exp that is none."""
    weights, output = observed.weights, observed.output
    if weights is None or output is None or not bool(output.isnan().any()):
        return logsum
    unknown = weights.detach().isnan().any(dim=-1)
    if unknown.shape != logsum.shape:
        return logsum
    if bool((logsum.isnan() & ~unknown).any()):  # a hidden key that is no number: kernels stumble
        logsum = torch.where(logsum.isnan(), plain_sums(observed).to(logsum.dtype), logsum)
    return logsum.masked_fill(unknown, torch.nan)


def _with_uniform_rows(query: Tensor, logsum: Tensor, rules: CallRules) -> tuple[Tensor, Tensor]:
    """Rows in which a finite number masks every key: the model attends equally to some keys."""
    if rules.uniform is None or rules.equal_keys is None:
        return query, logsum
    uniform = rules.uniform.expand(logsum.shape)
    equal = rules.equal_keys.to(logsum.dtype).log().expand(logsum.shape)
    return query.masked_fill(uniform[..., None], 0.0), torch.where(uniform, equal, logsum)
