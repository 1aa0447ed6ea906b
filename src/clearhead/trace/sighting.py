"""One attention call as a door saw it, whatever the model behind it calls its arguments."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from clearhead.attention.masks import Block, Mask


@dataclass(slots=True)
class Sighting:
    """softmax(cap(query · keyᵀ · scale) + bias, masked) · value, with axes (batch, head, …)."""

    query: Tensor  # (batch, head, query, key_dim)
    key: Tensor  # (batch, kv_head, key, key_dim)
    value: Tensor | None  # (batch, kv_head, key, value_dim)
    scale: float
    output: Tensor | None  # (batch, head, query, value_dim)
    logsum: Tensor | None = None  # (batch, head, query), sinks included, where a kernel gave it
    mask: Tensor | None = None  # boolean (True = may attend) or to be added, broadcastable
    bias: Tensor | None = None  # to be added as well, broadcastable
    rule: Mask | None = None  # a mask of ours
    from_start: bool = False  # causal, aligned to the first key as torch does it
    softcap: float | None = None
    sinks: Tensor | None = None  # (head,)
    dropout: float = 0.0
    weights: Tensor | None = None  # the model's own, to be compared with ours
    thinned: bool = False  # whether these weights are the ones after dropout
    repeated: bool = False  # the same weights were seen before, multiplied with something else
    cross: bool = False  # whether it is known to be cross-attention
    fused: bool = False  # seen at a call of scaled_dot_product_attention

    @property
    def sizes(self) -> tuple[int, int]:
        """How many queries and keys."""
        return self.query.shape[2], self.key.shape[2]

    def added(self, rows: range) -> Tensor | None:
        """Mask and bias of some rows as one tensor to add to the scores; None if there is none."""
        queries, keys = self.sizes
        parts = []
        for given in (self.mask, self.bias):
            if given is not None:
                part = given if given.shape[2] == 1 else given[:, :, rows.start : rows.stop]
                parts.append(as_added(part, self.query.dtype))
        block = Block(rows, range(keys), queries, keys, self.query.device)
        if self.rule is not None and not self.rule.full(block):
            seen = self.rule.rule(block)
            seen = seen[(None,) * (4 - seen.ndim)]
            parts.append(as_added(seen, self.query.dtype))
        if self.from_start:
            row = torch.arange(rows.start, rows.stop, device=self.query.device)[:, None]
            parts.append(as_added(block.key() <= row, self.query.dtype)[None, None])
        return None if not parts else sum(parts[1:], parts[0])


def as_added(given: Tensor, dtype: torch.dtype) -> Tensor:
    """A mask as numbers to add: 0 where it may attend, −∞ where not; numbers stay as they are."""
    if given.dtype != torch.bool:
        return given.detach()
    zero = torch.zeros((), dtype=dtype, device=given.device)
    return torch.where(given, zero, -torch.inf)


class Watcher(Protocol):
    """Somebody who wants to know of attention calls."""

    def keep(self, sighting: Sighting) -> None:
        """Take note of one call."""

    def refuse(self, reason: str) -> None:
        """A call was there, but it cannot be reproduced."""

    def module(self) -> nn.Module | None:
        """The module that is running, if it belongs to the watched model."""


class Active(threading.local):
    """Who watches in this thread, and whether torch's functions are doors right now.

    While ``inner`` is a list, sightings are collected there: a door further out knows more about
    the call and will tell the watchers itself.
    """

    watchers: tuple[Watcher, ...] = ()
    inner: list[Sighting] | None = None
    mode: AbstractContextManager[object] | None = None
    depth = 0  # how many running modules need the mode

    def tell(self, sighting: Sighting) -> None:
        """Tell every watcher of a call, or the door further out."""
        if self.inner is not None:
            self.inner.append(sighting)
            return
        for watcher in self.watchers:
            watcher.keep(sighting)

    def refuse(self, reason: str) -> None:
        """Tell every watcher that a call cannot be reproduced."""
        for watcher in self.watchers:
            watcher.refuse(reason)

    def look(self) -> None:
        """From here on, calls of torch's functions are looked at. That costs a microsecond each,
        so it is done only while something runs that may compute attention with them."""
        if self.depth == 0 and self.mode is not None:
            self.mode.__enter__()
        self.depth += 1

    def look_away(self) -> None:
        """The opposite of :meth:`look`; they nest."""
        self.depth -= 1
        if self.depth == 0 and self.mode is not None:
            self.mode.__exit__(None, None, None)


ACTIVE = Active()
