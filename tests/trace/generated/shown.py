"""What a watch shows of a layer, against the reference of that layer's calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from clearhead.trace.seen import Seen
from tests.trace.generated.reference import CLOSE, Expected


@dataclass(frozen=True)
class Shown:
    """The weights of one layer in one run, (batch, head, query, key)."""

    name: str
    path: str
    note: str
    weights: Tensor

    @property
    def kept_as_computed(self) -> bool:
        """True if its note says that some of its calls are shown as the model computed them."""
        return "as the model computed" in self.note


@dataclass(frozen=True)
class Comparison:
    """How what was shown of a layer relates to its calls."""

    verdict: str  # "right", "wrong", "rows missing", "nothing"
    detail: str = ""
    largest: float = 0.0


def shown_of(seen: Seen) -> list[Shown]:
    """Everything that a watch shows, run after run, through its public interface."""
    runs = getattr(seen, "runs", [seen])
    return [
        Shown(layer.name, layer.path, layer.note, _weights(run, layer.name, layer.batch))
        for run in runs
        for layer in run.layers
    ]


def _weights(run: Seen, name: str, batch: int) -> Tensor:
    return torch.stack([run[name].of(number).weights().double() for number in range(batch)])


def compared(
    shown: Sequence[Shown], calls: Sequence[Expected], placed: Sequence[Expected]
) -> Comparison:
    """Every shown row is a row of some call, and every row of every call is shown.

    ``placed`` are the calls once more, with keys by position: either is right. A row whose own
    weights are NaN may be shown as NaN or as zeros.
    """
    if not shown:
        return Comparison("nothing")
    joined = _heads_joined(shown)
    if joined is None:
        return Comparison("wrong", "modules of single heads show different numbers of calls")
    ways = [list(calls), list(placed), *_befores(joined, calls)]
    found = [_rows(joined, way) for way in ways if way]
    order = ("right", "rows missing", "wrong")
    return min(found, key=lambda one: (order.index(one.verdict), one.largest))


def _befores(shown: Sequence[Shown], calls: Sequence[Expected]) -> list[list[Expected]]:
    """Softmaxes that the model combined afterwards may be shown instead, if a note says so."""
    if not calls or not calls[0].before or not all(one.note for one in shown):
        return []
    split = [
        replace(call, weights=part, own=own)
        for call in calls
        for part, own in zip(call.before, call.own_before or [None] * len(call.before), strict=True)
    ]
    whole = [
        replace(
            call,
            own=torch.cat(call.own_before, dim=1) if call.own_before else None,
            rounding=None,
            weights=torch.cat(call.before, dim=1),
            bound=torch.cat([call.bound] * len(call.before), dim=1),
            blind=torch.cat([call.blind] * len(call.before), dim=1),
        )
        for call in calls
    ]
    return [split, whole]


def _heads_joined(shown: Sequence[Shown]) -> list[Shown] | None:
    """Modules of one head each, put together as the heads of one layer."""
    paths = list(dict.fromkeys(one.path for one in shown))
    if len(paths) == 1:
        return list(shown)
    groups = [[one for one in shown if one.path == path] for path in paths]
    if len({len(group) for group in groups}) != 1:
        return None
    return [
        replace(parts[0], weights=torch.cat([part.weights for part in parts], dim=1))
        for parts in zip(*groups, strict=True)
        if len({part.weights.shape for part in parts}) == 1
    ] or None


def _rows(shown: Sequence[Shown], calls: Sequence[Expected]) -> Comparison:
    """Match rows with rows; in one call they must stand in order."""
    heads = calls[0].weights.shape[:2]
    for one in shown:
        if one.weights.shape[:2] != heads:
            have, want = tuple(one.weights.shape[:2]), tuple(heads)
            return Comparison("wrong", f"{one.name} shows (batch, head) = {have}, not {want}")
    if len(shown) == len(calls) and all(
        one.weights.shape[2] == call.weights.shape[2]
        for one, call in zip(shown, calls, strict=True)
    ):
        return _in_order(shown, calls)
    return _in_any_place(shown, calls)


def _in_order(shown: Sequence[Shown], calls: Sequence[Expected]) -> Comparison:
    largest = 0.0
    for one, call in zip(shown, calls, strict=True):
        excess, difference = _difference(one.weights, call, one.kept_as_computed)
        largest = max(largest, difference)
        if not bool((excess <= 0).all()):
            row = excess.nan_to_num(9.0).amax(dim=(0, 1)).argmax()
            return Comparison(
                "wrong", f"{one.name} row {int(row)} off by {difference:.2g}", difference
            )
    return Comparison("right", "", largest)


def _in_any_place(shown: Sequence[Shown], calls: Sequence[Expected]) -> Comparison:
    """Rows of several calls, stitched or not: each must be some call's row."""
    rows = [
        replace(
            call,
            weights=call.weights[:, :, [row]],
            bound=call.bound[:, :, [row]],
            blind=call.blind[:, :, [row]],
            own=None if call.own is None else call.own[:, :, [row]],
            rounding=None if call.rounding is None else call.rounding[:, :, [row]],
        )
        for call in calls
        for row in range(call.weights.shape[2])
    ]
    found: set[int] = set()
    largest = 0.0
    for one in shown:
        for number in range(one.weights.shape[2]):
            here = one.weights[:, :, [number]]
            nearest = [
                (_difference(here, row, one.kept_as_computed), place)
                for place, row in enumerate(rows)
            ]
            fits = [(pair[1], place) for pair, place in nearest if bool((pair[0] <= 0).all())]
            if not fits:
                off = min(pair[1] for pair, _ in nearest)
                return Comparison(
                    "wrong", f"{one.name} row {number} is no row of the layer ({off:.2g})", off
                )
            found.update(place for _, place in fits)
            largest = max(largest, min(fits)[0])
    missing = len(rows) - len(found)
    if missing:
        return Comparison("rows missing", f"{missing} of {len(rows)} rows are not shown", largest)
    return Comparison("right", "", largest)


def _difference(weights: Tensor, call: Expected, as_computed: bool) -> tuple[Tensor, float]:
    """By how much each row exceeds its bound, and the largest difference of all.

    Weights that a note says are the model's own may be these, as it rounded them.
    """
    excess, difference = _apart(weights, call)
    if as_computed and call.own is not None:
        own = replace(call, weights=call.own, bound=torch.full_like(call.bound, CLOSE))
        beyond, other = _apart(weights, own)
        excess, difference = torch.minimum(excess, beyond), min(difference, other)
    elif as_computed and call.rounding is not None:  # nobody knows them: torch's kernel had them
        excess, _ = _apart(weights, replace(call, bound=call.bound + call.rounding))
    return excess, difference


def _apart(weights: Tensor, call: Expected) -> tuple[Tensor, float]:
    width = max(weights.shape[-1], call.weights.shape[-1])
    ours, theirs = (_widened(part, width) for part in (weights, call.weights))
    nothing = (ours.isnan() | (ours == 0)).all(dim=-1, keepdim=True) & call.blind[..., None]
    free = nothing | call.bound.isinf()
    differences = torch.where(free, 0.0, (ours - theirs).abs())
    differences = differences.nan_to_num(torch.inf)
    return (differences - call.bound).amax(dim=-1), float(differences.max())


def _widened(part: Tensor, width: int) -> Tensor:
    return torch.nn.functional.pad(part, (0, width - part.shape[-1]))
