"""Calls whose second product was taken: they wait until their heads are joined."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from clearhead.trace.watching.axis_digits import Label, stack_joined
from clearhead.trace.watching.doors.unfused.joined_heads import (
    UNCLEAR,
    joined_calls,
    mixed_calls,
    observed_call,
)
from clearhead.trace.watching.doors.unfused.trail import Pending, version, weak_memory
from clearhead.trace.watching.observed_call import ObservedCall
from clearhead.trace.watching.sample_check import matches_model, spelled_out
from clearhead.trace.watching.watchers import failure, mark_place, notify, refuse_at


class PendingCalls:
    """The calls of one running module, until the watchers are notified of them."""

    def __init__(self) -> None:
        self._pending: list[Pending] = []
        self._finished: list[StorageWeakRef] = []  # weights that were multiplied and described
        self._refused: list[tuple[Pending, str]] = []

    def finish(self, pending: Pending) -> Pending:
        """Remember the second product until the heads are joined."""
        if pending.output.is_inference():  # nobody counts what is written to these later
            trail = pending.trail
            pending.trail = replace(trail, query=trail.query.clone(), key=trail.key.clone())
            pending.value = pending.value.clone()
        pending.output = pending.output.clone()  # nor to this, by views that torch calls unsafe
        parts = (pending.trail.query, pending.trail.key, pending.value, pending.output)
        pending.versions = tuple(version(part) or 0 for part in parts)
        pending.place = mark_place()
        self._pending.append(pending)
        return pending

    def join(self, parts: list[Pending]) -> None:
        """Notify the watchers of heads that were computed one by one and are joined now."""
        if len({id(part) for part in parts}) == len(parts) and all(
            part in self._pending and not part.parts for part in parts
        ):
            self._pending = [part for part in self._pending if part not in parts]
            self._notify_joined(parts)

    def stack(self, parts: list[Pending], label: Label) -> Pending | None:
        """Outputs on an axis of their own: heads, if the model joins that axis to the width."""
        if not all(part in self._pending and not part.parts for part in parts):
            return None
        self._pending = [part for part in self._pending if part not in parts]
        group = replace(parts[0], label=label, joined=None, parts=tuple(parts))
        self._pending.append(group)
        return group

    def complete(self, pending: Pending) -> None:
        """Notify the watchers of a call."""
        if pending in self._pending:
            self._pending.remove(pending)
            self._notify(pending)

    def flush(self) -> None:
        """Calls whose heads were never joined."""
        waiting, self._pending = self._pending, []
        for pending in waiting:
            self._notify(pending)
        for pending, reason in self._refused:
            if not self._is_known(pending):
                refuse_at(pending.place, reason)
        self._refused.clear()

    def _notify(self, pending: Pending) -> None:
        try:
            self._describe(pending)
        except Exception as error:
            self._pass_on(pending, failure(error))

    def _describe(self, pending: Pending) -> None:
        if self._is_known(pending):
            return
        if pending.parts:
            if pending.joined is not None and stack_joined(pending.joined):
                self._notify_joined(list(pending.parts))
            else:
                self._pass_on(pending, UNCLEAR)
        elif pending.trail.kind == "mixed":
            calls = [self._checked(call, pending) for call in mixed_calls(pending)]
            for call in calls:
                self._pass_on(pending, call)
            if not any(isinstance(call, str) for call in calls):
                self._finish(*(source.weights for source in pending.trail.before))
        else:
            observed = self._described(pending)
            if isinstance(observed, ObservedCall):
                self._finish(pending.weights)
            self._pass_on(pending, observed)

    def _is_known(self, pending: Pending) -> bool:
        """True if the same weights were multiplied before, or if they are mixed from such that are:
        a derivative does that."""
        if pending.parts:
            return all(self._is_known(part) for part in pending.parts)
        if pending.trail.kind != "mixed":
            return self._is_finished(pending.weights)
        others = (part for part in self._pending if part is not pending)
        waiting = [weak_memory(part.weights) for part in others if part.trail.kind != "mixed"]
        return all(
            self._is_finished(source.weights) or weak_memory(source.weights) in waiting
            for source in pending.trail.before
        )

    def _is_finished(self, weights: Tensor) -> bool:
        self._finished = [known for known in self._finished if not known.expired()]  # type: ignore[no-untyped-call]
        return weak_memory(weights) in self._finished

    def _finish(self, *weights: Tensor) -> None:
        self._finished += [weak_memory(part) for part in weights]

    def _pass_on(self, pending: Pending, observed: ObservedCall | str) -> None:
        """A call that cannot be described is refused at the end: the same weights may come again,
        as they do in derivatives."""
        if isinstance(observed, str):
            self._refused.append((pending, observed))
        else:
            notify(observed)

    def _notify_joined(self, parts: list[Pending]) -> None:
        if all(self._is_known(part) for part in parts):
            return
        calls = [self._described(part, one_head=True) for part in parts]
        joined = joined_calls(calls, mark_place())
        if isinstance(joined, ObservedCall):
            self._finish(*(part.weights for part in parts))
        for part in parts if isinstance(joined, str) else parts[:1]:
            self._pass_on(part, joined)

    def _described(self, pending: Pending, *, one_head: bool = False) -> ObservedCall | str:
        """The call, with the model's own weights if the formula does not give them."""
        trail = pending.trail
        parts = (trail.query, trail.key, pending.value, pending.output)
        if pending.versions != tuple(version(part) or 0 for part in parts):
            return "its queries, keys, values or output were written over at once"
        return self._checked(observed_call(pending, one_head=one_head), pending)

    def _checked(self, observed: ObservedCall | str, pending: Pending) -> ObservedCall | str:
        if isinstance(observed, str):
            return observed
        observed.places = pending.place
        if observed.opaque or not matches_model(observed):
            return spelled_out(observed)
        return observed
