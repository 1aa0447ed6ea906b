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
    arranged,
    heads_joined,
    label_of,
    split_by,
)
from clearhead.trace.watching.observed_call import ObservedCall
from clearhead.trace.watching.watchers import watchers

if TYPE_CHECKING:
    from clearhead.trace.watching.doors.unfused import Part, Pending

_HEADS = (
    "num_heads", "n_heads", "heads", "n_head", "num_attention_heads", "num_attn_heads", "nhead",
    "num_key_value_heads", "h", "nb_heads", "n_attention_heads",
)  # fmt: skip
UNCLEAR = "nothing tells its heads from its sequences"


def observed_call(pending: Pending, *, one_head: bool = False) -> ObservedCall | str:
    """The call with axes (batch, head, …); or why that cannot be.

    ``one_head``: the model joins it to the results of other calls, as one head of several.
    """
    cuts = pending.joined or pending.label
    label = split_by(pending.label, cuts)
    if label is None:
        return UNCLEAR
    heads = _joined_digits(split_by(cuts, cuts) or cuts) if heads_joined(cuts) else None
    if heads is None:
        heads = _declared_digits(label, pending, one_head)
    if heads is None:
        return UNCLEAR
    return _arranged_call(pending, label, heads)


def joined_calls(calls: list[ObservedCall | str], places: dict[int, Any]) -> ObservedCall | str:
    """Heads that were computed by calls of their own, as one call; or why that cannot be."""
    heads = [call for call in calls if isinstance(call, ObservedCall)]
    if len(heads) != len(calls):
        return next(call for call in calls if isinstance(call, str))
    first = heads[0]
    alike = {
        (call.query.shape, call.key.shape, call.scale, call.softcap, call.fill, call.spelled)
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

    names = ("query", "key", "value", "output", "logsum", "mask", "bias", "weights")
    tensors: dict[str, Any] = {name: together(name) for name in names}
    return replace(first, **tensors, places=places, calls=len(heads))


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
    batched = [digit for dim in label[:2] for digit in dim if digit.axis == "z"]
    batch: Dim = tuple(digit for digit in batched if digit not in heads)
    rows: Dim = tuple(digit for digit in label[1] if digit not in heads)
    if any(digit.axis != "n" for digit in rows) or any(digit.axis == "n" for digit in batch):
        return UNCLEAR
    columns = label_of("m", (trail.key.shape[1],))[0]
    fine = (*label, columns)

    def four(tensor: Tensor, of: Label, last: tuple[Dim, ...]) -> Tensor | None:
        split = split_by(of, fine)
        return None if split is None else arranged(tensor, split, (batch, heads, *last))

    def scores_like(part: Part) -> Tensor | None:
        return four(part.tensor, part.label, (rows, columns))

    sizes = trail.query.shape
    deep = label_of("w", (sizes[2],))
    first = label_of("zn", (sizes[0], sizes[1]))
    query = four(trail.query, (*first, *deep), (rows, *deep))
    key = four(trail.key, (first[0], columns, *deep), (columns, *deep))
    wide = label_of("d", (pending.value.shape[2],))
    value = four(pending.value, (label[0], columns, *wide), (columns, *wide))
    output = four(pending.output, (*label[:2], *wide), (rows, *wide))
    weights = four(pending.weights, (*label[:2], columns), (rows, columns))
    parts = [
        [scores_like(part) for part in group]
        for group in (trail.added, trail.factors, trail.hidden)
    ]
    if any(part is None for part in (query, key, value, output, weights, *chain(*parts))):
        return "its axes cannot be followed"
    assert query is not None and key is not None and value is not None
    added, factors, hidden = ([part for part in group if part is not None] for group in parts)
    for factor in factors:
        query = query * factor
    mask = None
    for part in hidden:
        mask = ~part if mask is None else mask & ~part
    return ObservedCall(
        query,
        key,
        value,
        scale=trail.scale * (trail.capped or 1.0),
        softcap=trail.capped,
        output=output,
        mask=mask,
        fill=trail.fill if hidden else None,
        bias=sum(added[1:], added[0]) if added else None,
        dropout=trail.dropout,
        dtype=_narrowest(trail.query, pending.weights, pending.value),
        weights=weights,
        after_dropout=True,
    )


def _narrowest(*tensors: Tensor) -> torch.dtype:
    """The precision that the model computed in: autocast mixes several."""
    return min((tensor.dtype for tensor in tensors), key=lambda dtype: (dtype.itemsize, str(dtype)))
