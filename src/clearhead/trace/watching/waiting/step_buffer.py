"""Steps of a generation wait, until many of a layer can be recorded as one call.

A step has one query, yet recording it takes as many operations as recording a prompt. So it waits
as it came, with the version counters of its tensors. Steps in a row are what one call with several
queries would have been: step t sees the keys up to its own. They are put together only if the keys
say so, bit for bit: each step goes on where the one before ended. Then the later keys contain the
earlier ones. Where much waits already, that is compared at once, and the earlier keys are let go.
Whatever does not fit is recorded call by call, in the order of the calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from clearhead.attention.call import CAUSAL
from clearhead.trace.watching.module_stack import Frame
from clearhead.trace.watching.observed_call import ObservedCall
from clearhead.trace.watching.waiting.bare_step import BareStep

MOST_STEPS = 64  # of a layer
MOST_BYTES = 32 << 20  # that wait in all
MOST_HELD = 16 << 20  # from which on earlier keys and values are let go


@dataclass(slots=True)
class Step:
    """A call with one query that waits."""

    place: Frame
    given: ObservedCall | BareStep
    cross: bool
    forward: int
    versions: tuple[int, ...]  # of a bare step, it says them itself
    keys: int  # how many it has
    brought: Tensor | None = None  # the value that it brought, once its keys and values are let go

    @property
    def call(self) -> ObservedCall:
        """It in our form, which most bare steps never need."""
        if isinstance(self.given, BareStep):
            bare = self.given
            self.given = bare.call()
            self.versions = (bare.query_version, 0, 0, bare.mask_version, 0)
        return self.given

    @property
    def unchanged(self) -> bool:
        """True if nobody wrote to its tensors since."""
        given = self.given
        if isinstance(given, BareStep):
            return given.unchanged
        return self.versions == _versions(given)

    def release(self) -> None:
        """Let go of keys and values: the next step has the same ones, and its own."""
        value = self.call.value
        assert value is not None
        self.brought = value.narrow(2, self.keys - 1, 1).clone()
        self.call.key = self.call.value = _RELEASED
        self.versions = _versions(self.call)

    def restore(self, last: ObservedCall) -> None:
        """Have keys and values again, those of the last step up to this one's own."""
        if self.brought is not None and self.unchanged:
            assert last.value is not None
            self.call.key = last.key[:, :, : self.keys]
            self.call.value = last.value[:, :, : self.keys]
            self.versions = _versions(self.call)
            self.brought = None


_RELEASED = torch.empty(0)


class StepBuffer:
    """The steps of all layers that wait, in the order in which they ran."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.never: set[str] = set()  # paths of layers whose steps could not be put together
        self._last: dict[str, Step] = {}  # by path
        self._bytes = 0

    def take(
        self, place: Frame, call: ObservedCall, cross: bool, forward: int, *, owned: bool = False
    ) -> bool:
        """Let a call wait; False if it is no step, or not the next one of its layer. ``owned``:
        nobody else has its output."""
        if place.path in self.never or not _may_wait(call):
            return False
        last = self._last.get(place.path)
        if last is not None:
            if not _follows(last, call, cross, forward):
                return False
            if not cross and self._bytes >= MOST_HELD:
                held = last.given.key.nbytes
                if not last.unchanged or not _contains(call.key, last.given.key):
                    return False
                last.release()
                self._bytes -= 2 * held
        if call.output is not None and not owned:
            call.output = call.output.clone()  # models may write to it at once
        step = Step(place, call, cross, forward, _versions(call), call.key.size(2))
        self.steps.append(step)
        self._last[place.path] = step
        weights = 0 if call.weights is None else call.weights.nbytes
        self._bytes += 2 * call.key.nbytes + weights
        return True

    def take_bare(self, step: BareStep) -> bool:
        """Let a bare step wait that is unchanged; False if it is not plainly the next one of a
        layer whose last step still waits. What was asked of that one need not be asked again."""
        last, key, value = self._last.get(step.place.path), step.key, step.value
        if last is None or last.cross or step.forward == last.forward or self._bytes >= MOST_HELD:
            return False
        before, keys = last.given, key.size(2)
        if keys != last.keys + 1 or value.size(2) != keys or key._is_view() or value._is_view():
            return False
        if key.shape[:2] != before.key.shape[:2] or step.query.shape != before.query.shape:
            return False
        if key.size(3) != before.key.size(3) or key.dtype != before.key.dtype:
            return False
        mask = step.mask
        if mask is not None and mask.shape[2:] != (1, keys):
            return False
        if isinstance(before, BareStep):
            if not _alike_bare(step, before):
                return False
        elif not _alike_but_for_keys(step.call(), before):
            return False
        known = Step(last.place, step, False, step.forward, (), keys)
        self.steps.append(known)
        self._last[last.place.path] = known
        weights = 0 if step.weights is None else step.weights.nbytes
        self._bytes += 2 * key.nbytes + weights
        return True

    @property
    def full(self) -> bool:
        """True if nothing more should wait."""
        most = MOST_STEPS * max(1, len(self._last))
        return len(self.steps) >= most or self._bytes >= MOST_BYTES

    def empty(self) -> list[Step]:
        """All steps that waited; nothing waits any more."""
        waited, self.steps = self.steps, []
        self._last.clear()
        self._bytes = 0
        return waited


def by_layer(steps: list[Step]) -> list[list[Step]]:
    """The steps of each layer, in order."""
    layers: dict[str, list[Step]] = {}
    for step in steps:
        layers.setdefault(step.place.path, []).append(step)
    return list(layers.values())


class Joiner:
    """Puts the steps of a layer together; masks, which all layers share, only once.

    ``alone``: there is one layer only, whose keys follow from the tokens by themselves. Two texts
    may end in the same ones, so that all keys are compared; deeper layers tell texts apart.
    """

    def __init__(self, *, alone: bool = False) -> None:
        self._masks: dict[tuple[int, ...], Tensor] = {}
        self._places: dict[tuple[int, ...], Tensor] = {}  # of rows that are filled up, by lengths
        self._alone = alone

    def together(self, steps: list[Step]) -> ObservedCall | None:
        """The steps as one call, in which no new call is counted; None if they are not one."""
        if not all(step.unchanged for step in steps):
            return None
        calls, last = [step.given for step in steps], steps[-1].call
        if len(calls) == 1:
            return replace(last, counted=True)
        if not steps[0].cross and not (_same_keys(steps, self._alone) and same_values(steps)):
            return None
        masks = [call.mask for call in calls if call.mask is not None]
        return replace(
            last,
            query=torch.cat([call.query for call in calls], dim=2),
            output=_outputs(calls),
            logsum=_row_after_row([call.logsum for call in calls]),
            weights=self._padded([call.weights for call in calls if call.weights is not None], 0.0),
            mask=self._mask(masks),
            rule=None if masks or steps[0].cross else CAUSAL,
            unchecked=any(call.unchecked for call in calls),
            counted=True,
        )

    def _mask(self, masks: list[Tensor]) -> Tensor | None:
        """Later keys were not there: no step but its own and later ones saw them."""
        if not masks:
            return None
        name = tuple(id(mask) for mask in masks)
        if name not in self._masks:
            joined = self._padded(masks, 0.0 if masks[0].dtype == torch.bool else -torch.inf)
            assert joined is not None
            self._masks[name] = joined
        return self._masks[name]

    def _padded(self, rows: list[Tensor], fill: float) -> Tensor | None:
        """Rows (batch, head, 1, key) below each other, those with fewer keys filled up at the
        end."""
        if not rows:
            return None
        lengths = tuple(row.size(3) for row in rows)
        if lengths not in self._places:
            key = torch.arange(max(lengths), device=rows[0].device)
            there = key < torch.tensor(lengths, device=rows[0].device)[:, None]
            self._places = {lengths: there.flatten().nonzero()[:, 0]}
        joined = torch.cat([row.detach() for row in rows], dim=3)[:, :, 0]
        whole = joined.new_full((*joined.shape[:2], len(rows) * max(lengths)), fill)
        whole.index_copy_(2, self._places[lengths], joined)
        return whole.view(*joined.shape[:2], len(rows), -1)


def _may_wait(call: ObservedCall) -> bool:
    """True for a call with one query whose tensors nobody is likely to write to."""
    query, key, value, mask = call.query, call.key, call.value, call.mask
    if query.size(2) != 1 or value is None or query.is_inference():
        return False
    keys = key.size(2)
    if keys < 2 or value.size(2) != keys or (mask is not None and mask.shape[2:] != (1, keys)):
        return False
    if key._version or value._version or key._is_view() or value._is_view():
        return False  # a cache that is written to
    if call.logsum is None and not call.unchecked:
        return False
    plain = call.bias is None and call.rule is None and not call.from_start and not call.dropout
    alone = not (call.parts or call.spelled or call.inner or call.places)
    return plain and alone and call.fill is None


def _versions(call: ObservedCall) -> tuple[int, ...]:
    """How many times each of the tensors was written to that wait as they came."""
    value, mask, weights = call.value, call.mask, call.weights
    return (
        call.query._version,
        call.key._version,
        0 if value is None else value._version,
        0 if mask is None else mask._version,
        0 if weights is None else weights._version,
    )


def restored(steps: list[Step]) -> list[Step]:
    """Steps of one layer that could not be put together, each with all that it had; without those
    whose values are not what the last step has."""
    if all(step.brought is None for step in steps):
        return steps
    if not same_values([step for step in steps if step.brought is not None] + steps[-1:]):
        return [step for step in steps if step.brought is None]
    for step in steps:
        step.restore(steps[-1].call)
    return steps


def _follows(last: Step, call: ObservedCall, cross: bool, forward: int) -> bool:
    """True if a call can be the next step of a layer, by its sizes and options."""
    before = last.call
    if forward == last.forward or cross != last.cross:
        return False
    if call.query.shape != before.query.shape or call.key.dtype != before.key.dtype:
        return False
    if cross and call.key.data_ptr() != before.key.data_ptr():
        return False
    batch, heads, keys, width = before.key.shape
    if call.key.shape != (batch, heads, keys if cross else keys + 1, width):
        return False
    return _alike_but_for_keys(call, before)


def _alike_but_for_keys(call: ObservedCall, before: ObservedCall) -> bool:
    """True if two calls have the same parts and options."""
    told = (call.logsum is None) == (before.logsum is None) or (call.fused and before.fused)
    if not told or call.scale != before.scale:
        return False
    if (call.weights is None) != (before.weights is None):
        return False
    same = call.softcap == before.softcap and call.dtype == before.dtype
    return same and _alike(call.mask, before.mask) and _alike(call.sinks, before.sinks)


def _alike_bare(step: BareStep, before: BareStep) -> bool:
    """The same of two bare steps of a layer."""
    if (step.weights is None) != (before.weights is None) or step.alone != before.alone:
        return False
    return step.scale == before.scale and _alike(step.mask, before.mask)


def _alike(one: Tensor | None, other: Tensor | None) -> bool:
    """Both None, or tensors that differ in the number of keys at most."""
    if one is None or other is None:
        return one is other
    return one.dtype == other.dtype and one.shape[:2] == other.shape[:2]


def _contains(key: Tensor, before: Tensor) -> bool:
    """True if a step's keys go on where those of the step before ended: by the last ones, or all of
    them if there are several sequences, as two may end in the same token."""
    keys = before.size(2)
    if key.size(0) > 1:
        return torch.equal(key.narrow(2, 0, keys), before)
    return torch.equal(key.narrow(2, keys - 2, 2), before.narrow(2, keys - 2, 2))


def _same_keys(steps: list[Step], every: bool) -> bool:
    """True if the last step has the keys of every step that still has its own."""
    key, first = steps[-1].given.key, steps[0].keys
    calls = [step.given for step in steps if step.brought is None]
    if every or key.size(0) > 1:
        return all(torch.equal(call.key, key.narrow(2, 0, call.key.size(2))) for call in calls)
    if calls[-1] is steps[-1].given and len(calls) < len(steps):
        calls.pop()  # those in between were compared when they let go of theirs
    if not calls or len(steps) == 1:
        return True
    # The key before and its own: windows of two, one further on for each step.
    ends = [call.key.narrow(2, first - 2 + n, 2) for n, call in enumerate(calls)]
    windows = key.narrow(2, first - 2, len(calls) + 1).unfold(2, 2, 1).transpose(3, 4)
    return torch.equal(torch.cat(ends, dim=2), windows.flatten(2, 3))


def same_values(steps: list[Step]) -> bool:
    """True if the last step has the values that every step brought."""
    last, brought = steps[-1].given.value, []
    for step in steps:
        value = step.given.value
        if step.brought is not None:
            brought.append(step.brought)
        elif value is not None:
            brought.append(value.narrow(2, step.keys - 1, 1))
    if last is None or len(brought) != len(steps):
        return False
    return torch.equal(torch.cat(brought, dim=2), last.narrow(2, steps[0].keys - 1, len(steps)))


def _outputs(calls: Sequence[ObservedCall | BareStep]) -> Tensor | None:
    """Row after row, (batch, head, row, value_dim); bare steps have the other order of axes."""
    rows = []
    for call in calls:
        if call.output is None:
            return None
        swapped = isinstance(call, BareStep) and call.swapped
        rows.append(call.output if swapped else call.output.transpose(1, 2))
    return torch.cat(rows, dim=1).transpose(1, 2)


def _row_after_row(rows: list[Tensor | None]) -> Tensor | None:
    there = [row for row in rows if row is not None]
    return torch.cat(there, dim=2) if len(there) == len(rows) else None
