"""Which part of a product's axes is the head, and which the sequence: by evidence.

The strongest evidence is what the model does with the result: the part that it joins to the width
of the values, right before it, is the head; whatever else was batched are sequences. Where that is
not seen, the number of heads that the module declares, and the number of sequences that it was
given, must leave one answer. If they leave several, the call is refused.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from clearhead.trace.watching.axis_digits import (
    Digit,
    Dim,
    Label,
    heads_joined,
    label_of,
    split_by,
)
from clearhead.trace.watching.doors.unfused.scored_call import (
    UNFOLLOWED,
    four,
    narrowest,
    scored_call,
)
from clearhead.trace.watching.observed_call import ObservedCall
from clearhead.trace.watching.watchers import watchers

if TYPE_CHECKING:
    from clearhead.trace.watching.doors.unfused.trail import Pending, Source

_HEADS = (
    "num_heads", "n_heads", "heads", "n_head", "num_attention_heads", "num_attn_heads", "nhead",
    "num_key_value_heads", "h", "nb_heads", "n_attention_heads",
)  # fmt: skip
UNCLEAR = "nothing tells its heads from its sequences"
MIXED_NOTE = "weights of a softmax, which the model mixes with others or changes afterwards"


def observed_call(pending: Pending, *, one_head: bool = False) -> ObservedCall | str:
    """The call with axes (batch, head, …); or why that cannot be.

    ``one_head``: the model joins it to the results of other calls, as one head of several.
    """
    cuts = pending.joined or pending.label
    label = split_by(pending.label, cuts)
    heads = _heads_of(pending, cuts, one_head)
    if label is None or heads is None:
        return UNCLEAR
    return _arranged_call(pending, label, heads)


def _heads_of(pending: Pending, cuts: Label, one_head: bool = False) -> Dim | None:
    """By what the model joins to the width, or by what the module says of itself."""
    joined = _joined_digits(split_by(cuts, cuts) or cuts) if heads_joined(cuts) else None
    label = split_by(pending.label, cuts)
    if joined is not None or label is None:
        return joined
    return _declared_digits(label, pending, one_head)


def mixed_calls(pending: Pending) -> list[ObservedCall | str]:
    """The softmaxes that a call's weights were mixed from, each as a call with a note.

    What the layer would hand on without mixing is computed from the model's own weights.
    """
    whole = observed_call(pending)
    if isinstance(whole, str):
        return [whole]
    calls: list[ObservedCall | str] = []
    for source in pending.trail.before:
        call = _source_call(pending, source)
        calls.append(call if isinstance(call, str) else _with_values(call, whole))
    return calls


def _with_values(call: ObservedCall, whole: ObservedCall) -> ObservedCall:
    """The values of the mixed call, or those of its first head if other heads were mixed."""
    weights, value = call.weights, whole.value
    assert weights is not None and value is not None
    heads = weights.shape[1]
    if whole.query.shape[1] != heads:
        value = value[:, :1].expand(-1, heads, -1, -1)
    output = weights @ value.to(weights.dtype)
    return replace(call, value=value, output=output, note=MIXED_NOTE)


def _source_call(pending: Pending, source: Source) -> ObservedCall | str:
    """Weights before they were mixed, as a call without values."""
    if not source.whole:
        return "its weights were written over before they were multiplied"
    cuts = pending.joined or pending.label
    fine = split_by(source.trail.label, (*cuts, *source.trail.label))
    if fine is None:
        return UNCLEAR
    heads = source.heads or _heads_of(pending, cuts)
    if heads is None or any(digit not in chain(*fine) for digit in heads):
        return UNCLEAR
    return _of_source(source, fine, heads)


def joined_calls(calls: list[ObservedCall | str], places: dict[int, Any]) -> ObservedCall | str:
    """Heads that were computed by calls of their own, as one call; or why that cannot be."""
    heads = [call for call in calls if isinstance(call, ObservedCall)]
    if len(heads) != len(calls):
        return next(call for call in calls if isinstance(call, str))
    first = heads[0]
    alike = {
        (
            *(call.query.shape, call.key.shape, call.scale, call.softcap, call.fill),
            *(call.spelled, call.sinks is None, call.dropout),
        )
        for call in heads
    }
    if len(alike) > 1 or first.query.shape[1] != 1:
        return "its heads, computed one by one, are not alike"

    def together(name: str) -> Tensor | None:
        parts = [getattr(call, name) for call in heads]
        if any(part is None for part in parts):
            return None
        if name in ("mask", "bias") and all(same_numbers(part, parts[0]) for part in parts):
            return parts[0]  # type: ignore[no-any-return]
        shape = torch.broadcast_shapes(*(part.shape for part in parts))  # type: ignore[no-untyped-call]
        return torch.cat([part.expand(shape) for part in parts], dim=1)

    names = ("query", "key", "value", "output", "logsum", "mask", "bias", "weights", "undropped")
    tensors: dict[str, Any] = {name: together(name) for name in names}
    sinks = [call.sinks for call in heads if call.sinks is not None]
    tensors["sinks"] = torch.cat(sinks) if len(sinks) == len(heads) else None
    parts = tuple(call.places or places for call in heads)
    return replace(first, **tensors, places=places, parts=parts)


def same_numbers(one: Tensor, other: Tensor) -> bool:
    """True if two masks say the same."""
    return (one.data_ptr() == other.data_ptr() and one.shape == other.shape) or torch.equal(
        one, other
    )


def _joined_digits(label: Label) -> tuple[Digit, ...] | None:
    """The digits that stand before the width in one dimension: the heads."""
    for dim in label:
        if dim and dim[-1].axis == "d" and len(dim) > 1:
            return tuple(digit for digit in dim if digit.axis != "d")
    return None


def _declared_digits(
    label: Label, pending: Pending, one_head: bool = False
) -> tuple[Digit, ...] | None:
    """The heads by what the module says of itself; () if there is one head only."""
    batched: list[Digit] = [*label[0]]
    declared = {1} if one_head else _declared()
    given: tuple[int, ...] = next(
        (frame.batch for frame in (pending.place or {}).values() if frame.batch), ()
    )
    fitting = [digit for digit in batched if digit.size in declared]
    if len(batched) == 2:  # a model that keeps four axes: batch and head, in whatever order
        if len(fitting) == 1:
            return (fitting[0],)
        swapped = bool(given) and given[0] == batched[1].size != batched[0].size
        return (batched[0],) if swapped and not fitting else (batched[1],)
    if len(batched) == 0:  # a single head; of a module that has several, this is one of them
        return () if not declared or 1 in declared else None
    if len(batched) != 1:
        return None
    alone = batched[0]
    sequences = given[0] if len(given) > 2 else 1 if given else None
    if sequences == 1 and alone.size > 1:
        return (alone,)
    if sequences == alone.size:
        return () if alone.size not in declared or declared == {1} else None
    return None


def _declared() -> set[int]:
    found: set[int] = set()
    for watcher in watchers():
        module = watcher.module()
        for name in _HEADS:
            count = getattr(module, name, None)
            if isinstance(count, int) and not isinstance(count, bool):
                found.add(count)
    return found


def _arranged_call(pending: Pending, label: Label, heads: tuple[Digit, ...]) -> ObservedCall | str:
    trail = pending.trail
    batched = [digit for dim in label[:2] for digit in dim if digit.axis in "zg"]
    batch: Dim = tuple(digit for digit in batched if digit not in heads)
    rows: Dim = tuple(digit for digit in label[1] if digit not in heads)
    if any(digit.axis != "n" for digit in rows) or any(digit.axis == "n" for digit in batch):
        return UNCLEAR
    columns = label_of("m", (trail.key.shape[1],))[0]
    observed = scored_call(trail, pending.weights, (*label[:2], columns), (batch, heads, rows))
    if isinstance(observed, str):
        return observed
    wide = label_of("d", (pending.value.shape[2],))
    fine = (*label, columns)
    places = [
        ((label[0], columns, *wide), (columns, *wide)),
        ((*label[:2], *wide), (rows, *wide)),
    ]
    value, output = (
        four(tensor, of, fine, (batch, heads, *last))
        for tensor, (of, last) in zip((pending.value, pending.output), places, strict=True)
    )
    if value is None or output is None:
        return UNFOLLOWED
    dtype = narrowest(trail.query, pending.weights, pending.value)
    return replace(observed, value=value, output=output, dtype=dtype)


def _of_source(source: Source, label: Label, heads: Dim) -> ObservedCall | str:
    """Weights of any number of axes, (batch, head, …)."""
    every = [digit for dim in label for digit in dim]
    batch = tuple(digit for digit in every if digit.axis in "zg" and digit not in heads)
    rows = [digit for digit in every if digit.axis == "n" and digit not in heads]
    in_order = tuple(sorted(rows, key=lambda digit: -digit.step))
    return scored_call(source.trail, source.weights, label, (batch, heads, in_order))
