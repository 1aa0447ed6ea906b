"""The door at unfused attention: a model computes product, softmax and product by itself.

    scores  = query @ key.transpose(-1, -2)      torch.matmul, bmm, baddbmm, einsum
    scores  = scores * scale + mask              and ÷, −, masked_fill, where, view, dropout …
    weights = softmax(scores)
    output  = weights @ value

Every step on the way from the first product to the second is followed (``unfused_steps.py``), and
nothing is computed anew. Where a step is unknown, the trail ends and the module counts as not seen.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor

from clearhead.trace.watching.observed_call import ACTIVE, ObservedCall
from clearhead.trace.watching.sample_check import matches_model

_HEADS = ("num_heads", "n_heads", "heads", "n_head", "num_attention_heads", "num_attn_heads")


@dataclass(frozen=True)
class Trail:
    """How a tensor came from a product of queries and keys."""

    query: Tensor  # (…, query, key_dim)
    key: Tensor  # (…, key, key_dim)
    scale: float = 1.0
    added: tuple[Tensor, ...] = ()
    hidden: tuple[Tensor, ...] = ()  # True = may not attend
    heads: int | None = None  # when a view told how (batch · head) divides
    weights: Tensor | None = None  # once the softmax was taken
    dropout: float = 0.0


Step: TypeAlias = "Callable[[UnfusedDoor, Tensor, tuple[Any, ...], dict[str, Any]], Trail | None]"


class UnfusedDoor:
    """Follows the tensors of one thread from query · key to weights · value."""

    def __init__(self) -> None:
        self._trails: dict[int, tuple[weakref.ref[Tensor], Trail]] = {}
        self._finished: weakref.ref[Tensor] | None = None  # the weights that were multiplied last
        self.heads: int | None = None  # of the multi-head function that is running

    def note(self, step: Step, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A function was called that is a known step (``unfused_steps.py``)."""
        if not isinstance(result, Tensor) or not args:
            return
        trail = step(self, result, args, kwargs)
        if trail is not None:
            if len(self._trails) > 64:
                self._trails = {
                    name: entry for name, entry in self._trails.items() if entry[0]() is not None
                }
            self._trails[id(result)] = (weakref.ref(result), trail)
        else:
            self._trails.pop(id(result), None)

    def trail(self, tensor: Any) -> Trail | None:
        """How a tensor came about, if it is on a trail."""
        entry = self._trails.get(id(tensor))
        return entry[1] if entry is not None and entry[0]() is tensor else None

    def finish(self, trail: Trail, value: Tensor, output: Tensor) -> None:
        """Take the second product, weights · value, and notify the watchers of the call."""
        with torch.no_grad(), torch._C.DisableTorchFunction():
            observed = _observed_call(trail, value, output, self._head_count(trail))
            good = observed is not None and matches_model(observed)
        if good and observed is not None:
            assert trail.weights is not None
            observed.repeated = self._finished is not None and self._finished() is trail.weights
            self._finished = weakref.ref(trail.weights)
            ACTIVE.notify(observed)
        elif ACTIVE.collected is None:
            ACTIVE.refuse("it computes attention in a way of its own")

    def _head_count(self, trail: Trail) -> int:
        if self.heads is not None or trail.heads is not None:
            return self.heads or trail.heads or 1
        for watcher in ACTIVE.watchers:
            for name in _HEADS:
                count = getattr(watcher.module(), name, None)
                if isinstance(count, int) and trail.query.shape[0] % count == 0:
                    return count
        return 1


def _observed_call(trail: Trail, value: Tensor, output: Tensor, heads: int) -> ObservedCall | None:
    query = trail.query

    def four(part: Tensor) -> Tensor:
        if part.ndim == 3 and query.ndim == 3:
            return (
                part.reshape(-1, heads, *part.shape[1:])
                if part.shape[0] % heads == 0
                else part[None]
            )
        return part[(None,) * (4 - part.ndim)]

    parts = [trail.query, trail.key, value, output, *trail.added, *trail.hidden]
    if any(part.ndim > 4 for part in parts):
        return None
    key, value = four(trail.key), four(value)
    batch = four(query).shape[0]
    if key.shape[0] == 1 and batch > 1:
        key, value = (part.expand(batch, -1, -1, -1) for part in (key, value))
    hidden = [four(part) for part in trail.hidden]
    added = [four(part) for part in trail.added]
    mask = None
    if hidden:
        mask = ~hidden[0]
        for part in hidden[1:]:
            mask = mask & ~part
    return ObservedCall(
        four(query),
        key,
        value,
        scale=trail.scale,
        output=four(output),
        mask=mask,
        bias=sum(added[1:], added[0]) if added else None,
        dropout=trail.dropout,
        weights=trail.weights,
    )
