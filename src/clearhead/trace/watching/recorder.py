"""The recorder of one ``watch``: observed calls come in, records are kept."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.errors import InputError
from clearhead.trace.spill import Spill
from clearhead.trace.watching.coverage import Coverage
from clearhead.trace.watching.doors.engine import EngineDoor
from clearhead.trace.watching.doors.happened import forget_sizes
from clearhead.trace.watching.doors.transformers import OWN_WAY, described
from clearhead.trace.watching.doors.unfused.following import follow_steps
from clearhead.trace.watching.doors.windows import windows_of
from clearhead.trace.watching.input_ids import InputIds
from clearhead.trace.watching.layer_filter import LayerFilter
from clearhead.trace.watching.layer_names import LayerNames
from clearhead.trace.watching.module_stack import Frame, ModuleStack
from clearhead.trace.watching.observed_call import ObservedCall
from clearhead.trace.watching.record_writer import Prepared, RecordWriter
from clearhead.trace.watching.runs import Runs
from clearhead.trace.watching.sample_check import checked, spelled_out
from clearhead.trace.watching.waiting.bare_step import BareStep, Known
from clearhead.trace.watching.waiting.inbox import Inbox, Letter
from clearhead.trace.watching.waiting.output_check import compared
from clearhead.trace.watching.waiting.step_buffer import (
    Joiner,
    Step,
    StepBuffer,
    by_layer,
    restored,
)
from clearhead.trace.watching.watched import Watched
from clearhead.trace.watching.watchers import (
    Calls,
    add_watcher,
    failure,
    is_observing,
    observe,
    remove_watcher,
    watchers,
)

SHOWN_NAMES = 12  # of layers, in an error
WRITTEN_OVER = "its queries or keys were written over later in the same forward"


ONE_BY_ONE = "torch.vmap runs its kernel once for each sample"
ROUNDED = "rows in which everything is masked go by how its scores are rounded"


class Recorder:
    """Keeps the observed calls of one model as records, for one ``watch``."""

    def __init__(
        self,
        model: nn.Module,
        wanted: LayerFilter,
        values: bool,
        tokenizer: object,
        runs: int | None = None,
        modules: list[tuple[str, nn.Module]] | None = None,
    ) -> None:
        self._wanted, self._tokenizer = wanted, tokenizer
        self.open = True
        self.fault: InputError | None = None  # raised when the block ends, not in the model
        self._stack = ModuleStack(
            model,
            self._entered,
            follow_steps,
            self._is_here,
            self._ran_elsewhere,
            windows_of,
            modules,
        )
        self._names = LayerNames(self._stack.attention)
        self._runs, self._spill = Runs(runs), Spill()
        self._ids = InputIds(self._names.two_stacks)
        self._coverage = Coverage(self._stack)
        self._steps, self._inbox = StepBuffer(), Inbox(*_reading(self))
        self.takes, self.put_alone = self._inbox.takes, self._inbox.put_alone
        self.engine = EngineDoor(self)
        settle = _settling(self)
        self._writer = RecordWriter(self._names, wanted, self._runs, self._spill, values, settle)
        self.seen = Watched(self._runs, self._spill, self._coverage, settle)

    def begin(self) -> None:
        """Be notified of the calls of this context."""
        self._count_leftovers()  # and count from here on, whichever module runs first
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

    @property
    def stack(self) -> ModuleStack:
        """The modules of the watched model."""
        return self._stack

    def begin_forward(self, path: str, ids: Tensor) -> None:
        """A forward begins that no hook of a module hears of."""
        self._stack.forward += 1
        self._entered(path, (ids,), {})

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
        if place.in_vmap and observed.fused:
            self.refuse(ONE_BY_ONE, place)
            return
        if observed.inner:
            path = f"{place.path}.{observed.inner}" if place.path else observed.inner
            place = replace(place, path=path)
        self._read_inbox()
        self._keep_or_wait(place, observed, self._stack.forward)

    def put(
        self,
        calls: Calls,
        result: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        function: Any,
    ) -> None:
        """Put down a call, with what ran inside of it."""
        try:
            self._inbox.put(calls, result, args, kwargs, function)
        except Exception as error:  # the model goes on
            self.refuse(failure(error))
        if self._inbox.full:
            self.read()

    def read(self) -> None:
        """Describe the calls that were put down, while the model runs."""
        observe(self._read_inbox)

    def settle(self) -> None:
        """Record the calls that wait."""
        self.engine.settle()
        if not self._steps.steps and not self._inbox.letters:
            return
        if is_observing():
            self._record_waiting()
        else:
            observe(self._record_waiting)

    def _record_waiting(self) -> None:
        self._read_inbox()
        self._record_steps()

    def _read_inbox(self) -> None:
        """Describe the calls that were put down, in their order."""
        if not self._inbox.letters:
            return
        letters, wrong = self._inbox.empty()
        for letter in letters:
            try:
                if type(letter) is BareStep and not wrong and self._read_bare(letter):
                    continue
                self._read(letter, id(letter.place.module) in wrong)
            except Exception as error:
                self.refuse(failure(error), letter.place)

    def _read_bare(self, step: BareStep) -> bool:
        """The short way of most steps; False if it has to be the long one."""
        if not step.unchanged or not self._steps.take_bare(step):
            return False
        path = step.place.path
        if step.softmaxes:
            self._coverage.happened[path] += step.softmaxes
        self._coverage.kept[path] += 1
        if self._steps.full:
            self._record_steps()
        return True

    def _read(self, letter: BareStep | Letter, wrong: bool) -> None:
        path = letter.place.path
        if not letter.unchanged:
            self._coverage.refused[path] = WRITTEN_OVER
            self._runs.drop(path)
            return
        bare = isinstance(letter, BareStep)
        softmaxes = letter.softmaxes if isinstance(letter, BareStep) else letter.calls.softmaxes
        if softmaxes:
            self._coverage.happened[path] += softmaxes
        observed = OWN_WAY if wrong else _said_by(letter)
        if isinstance(observed, str):
            self.refuse(observed, letter.place)
        else:
            self._keep_or_wait(letter.place, observed, letter.forward, owned=bare)

    def _keep_or_wait(
        self, place: Frame, observed: ObservedCall, forward: int, *, owned: bool = False
    ) -> None:
        try:
            self._wait_or_record(place, observed, forward, owned)
        except InputError as fault:
            self.fault = self.fault or fault

    def _wait_or_record(
        self, place: Frame, observed: ObservedCall, forward: int, owned: bool
    ) -> None:
        cross = place.cross or observed.cross
        if self._runs.passes(place.path, observed.key, observed.query.shape[2], forward):
            self._count(place, observed)
            return
        grows = self._runs.grows(place.path)
        if grows and self._steps.take(place, observed, cross, forward, owned=owned):
            self._count(place, observed)
            if not owned:
                self._inbox.known[id(place.module)] = Known.of(place, observed)
                place.understood = place.at is place
            if self._steps.full:
                self._record_steps()
            return
        self._inbox.known.pop(id(place.module), None)
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
                self._writer.add(step.place, observed, step.cross, prepared)
            return
        for step in self._each_with_its_keys(steps):
            self._record_step(step)

    def _each_with_its_keys(self, steps: list[Step]) -> list[Step]:
        """The steps as they came, in order; those whose values changed are refused."""
        whole = {id(step) for layer in by_layer(steps) for step in restored(layer)}
        for step in steps:
            if id(step) not in whole:
                self._coverage.refused[step.place.path] = WRITTEN_OVER
                self._runs.drop(step.place.path)
        return [step for step in steps if id(step) in whole]

    def _joined(self, steps: list[Step]) -> list[tuple[Step, ObservedCall, Prepared]] | None:
        layers, found = by_layer(steps), []
        joiner = Joiner(alone=len(layers) == 1)
        for layer in layers:
            step, observed = layer[-1], joiner.together(layer)
            self._steps.never.add(step.place.path)  # unless it can be put together
            observed = None if observed is None else compared(observed)
            if observed is None:
                return None
            if not self._writer.rules.of(observed).hold(observed):
                return None
            prepared = self._writer.prepared(step.place, observed, step.cross, step.forward)
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
        self._writer.rules.forget()
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
        for path in self._writer.written_over():
            self._coverage.refused[path] = WRITTEN_OVER
            self._runs.drop(path)

    def _count(self, place: Frame, observed: ObservedCall) -> None:
        for part in observed.parts or ({id(self): place},):
            path = part.get(id(self), place).path
            self._coverage.kept[path] += 1
            self._coverage.seen.add(path)

    def _keep(self, place: Frame, given: ObservedCall, forward: int) -> None:
        observed = checked(given)
        if isinstance(observed, ObservedCall) and not self._writer.rules.of(observed).hold(
            observed
        ):
            observed = ROUNDED if observed.weights is None else spelled_out(observed)
        if isinstance(observed, str):
            self.refuse(observed, place)
            return
        if not observed.counted:
            self._count(place, observed)
        cross = place.cross or observed.cross
        self._writer.add(
            place, observed, cross, self._writer.prepared(place, observed, cross, forward)
        )


def _said_by(letter: BareStep | Letter) -> ObservedCall | str:
    if isinstance(letter, BareStep):
        return letter.call()
    return described(letter.calls, letter.result, letter.args, letter.kwargs)


def _reading(recorder: Recorder) -> tuple[Callable[[], None], Callable[[Exception], None]]:
    """What an inbox does when it is full, and when it failed, without keeping the recorder."""
    known = weakref.ref(recorder)

    def read() -> None:
        recorder = known()
        if recorder is not None:
            recorder.read()

    def fail(error: Exception) -> None:
        recorder = known()
        if recorder is not None:
            recorder.refuse(failure(error))

    return read, fail


def _settling(recorder: Recorder) -> Callable[[], None]:
    """Its ``settle``, without keeping the recorder: records outlive it."""
    known = weakref.ref(recorder)

    def settle() -> None:
        recorder = known()
        if recorder is not None:
            recorder.settle()

    return settle
