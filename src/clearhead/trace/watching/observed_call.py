"""One attention call in one form, whatever the model calls its arguments, and who is notified."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from clearhead.attention.masks import Block, Mask


@dataclass(slots=True)
class ObservedCall:
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
    after_dropout: bool = False  # ``weights`` are the ones after dropout
    repeated: bool = False  # the same weights were seen before, multiplied with something else
    cross: bool = False  # known to be cross-attention
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
    """Receives the attention calls that the doors observe."""

    def keep(self, observed: ObservedCall) -> None:
        """Record one call."""

    def refuse(self, reason: str) -> None:
        """Note that a call ran which cannot be reproduced, and why."""

    def module(self) -> nn.Module | None:
        """The module that is running, if it belongs to the watched model."""


class Active(threading.local):
    """The watchers of this thread, and whether calls of torch's functions are observed right now.

    While ``collected`` is a list, observed calls are only added to it: an outer door knows more
    about the call and will notify the watchers itself.
    """

    watchers: tuple[Watcher, ...] = ()
    collected: list[ObservedCall] | None = None
    mode: AbstractContextManager[object] | None = None
    depth = 0  # how many running modules need the mode

    def notify(self, observed: ObservedCall) -> None:
        """Pass a call to every watcher, or to the outer door."""
        if self.collected is not None:
            self.collected.append(observed)
            return
        for watcher in self.watchers:
            watcher.keep(observed)

    def refuse(self, reason: str) -> None:
        """Report to every watcher that a call cannot be reproduced."""
        for watcher in self.watchers:
            watcher.refuse(reason)

    def enter_mode(self) -> None:
        """Observe calls of torch's functions from here on. That costs a microsecond each, so it
        is done only while a module runs that may compute attention with them."""
        if self.depth == 0 and self.mode is not None:
            self.mode.__enter__()
        self.depth += 1

    def leave_mode(self) -> None:
        """The opposite of :meth:`enter_mode`; they nest."""
        self.depth -= 1
        if self.depth == 0 and self.mode is not None:
            self.mode.__exit__(None, None, None)


ACTIVE = Active()
