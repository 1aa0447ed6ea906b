"""One attention call in one form, whatever the model calls its arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

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
    undropped: Tensor | None = None  # the model's own weights before dropout, if they are there
    unchecked: bool = False  # ``weights`` were not compared with the formula's yet; without them,
    # ``output`` was not
    counted: bool = False  # as a call that was seen
    cross: bool = False  # known to be cross-attention
    fused: bool = False  # computed by a fused kernel
    dtype: torch.dtype | None = None  # of the model's computation, if not that of ``query``
    fill: float | None = None  # the number that hidden scores got, where ``mask`` is boolean
    places: dict[int, Any] | None = None  # where it ran, for each watcher, if that was earlier
    parts: tuple[dict[int, Any], ...] = ()  # likewise of each head, if a call of its own made it
    opaque: bool = False  # its scores fit no formula
    note: str = ""  # what a reader of its weights must know
    spelled: bool = False  # ``bias`` holds the logarithms of the model's own weights
    inner: str = ""  # the name of the module inside the running one that it belongs to

    @property
    def sizes(self) -> tuple[int, int]:
        """How many queries and keys."""
        return self.query.shape[2], self.key.shape[2]

    def added(self, rows: range) -> Tensor | None:
        """Mask and bias of some rows as one tensor to add to the scores; None if there is none."""
        queries, keys = self.sizes
        parts = []
        for given in (self.bias, self.mask):
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

    def scored(self, scores: Tensor, rows: range) -> Tensor:
        """The scores of some rows with all that is added to them; hidden ones as they became."""
        if self.mask is None or self.mask.dtype != torch.bool or self.fill is None:
            added = self.added(rows)
            return scores if added is None else scores + added
        bias, mask = (
            part if part is None or part.shape[2] == 1 else part[:, :, rows.start : rows.stop]
            for part in (self.bias, self.mask)
        )
        assert mask is not None
        return torch.where(mask, scores if bias is None else scores + bias.detach(), self.fill)


def as_added(given: Tensor, dtype: torch.dtype) -> Tensor:
    """A mask as numbers to add: 0 where it may attend, −∞ where not; numbers stay as they are."""
    if given.dtype != torch.bool:
        return given.detach()
    zero = torch.zeros((), dtype=dtype, device=given.device)
    return torch.where(given, zero, -torch.inf)
