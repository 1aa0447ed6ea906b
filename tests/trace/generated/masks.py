"""Masks: which keys a query may not attend to, and how a model says so."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from tests.trace.generated.spec import Spec

NUMBERS = {"−inf": -torch.inf, "−1e9": -1e9, "−1e4": -1e4, "−65504": -65504.0}
FILLING = ("masked_fill", "masked_fill_", "where", "assign scores")


@dataclass(frozen=True)
class Mask:
    """The mask of one call, on the axes (batch or 1, head or 1, query, key)."""

    keep: Tensor  # True = may attend
    hidden_by: str
    step: str
    axes: int
    seed: int
    heads: int
    batch: int
    pattern: str

    @property
    def fills(self) -> bool:
        """True if a number takes the place of hidden scores, instead of being added to them."""
        return self.step in FILLING

    def number(self, dtype: torch.dtype) -> float:
        """The number that hides."""
        if self.hidden_by == "finfo.min":
            return float(torch.finfo(dtype).min)
        return NUMBERS.get(self.hidden_by, -torch.inf)

    def added(self, dtype: torch.dtype) -> Tensor:
        """The numbers that are added to the scores."""
        hidden = torch.zeros(self.keep.shape, dtype=dtype)
        numbers = torch.full(self.keep.shape, self.number(dtype), dtype=dtype)
        if self.hidden_by == "mixed":
            numbers = self._mixed(dtype)
        if self.step == "assign mask":
            hidden[~self.keep] = numbers[~self.keep]
        else:
            hidden = torch.where(self.keep, hidden, numbers)
        return hidden + self._alibi(dtype) if self.hidden_by == "−inf + ALiBi" else hidden

    def _mixed(self, dtype: torch.dtype) -> Tensor:
        """−∞ and finite minima side by side; a row that sees nothing may have any of them."""
        chance = torch.Generator().manual_seed(self.seed)
        kind = torch.randint(3, self.keep.shape, generator=chance)
        minima = torch.tensor([-torch.inf, torch.finfo(dtype).min, -1e4], dtype=dtype)
        return minima[kind]

    def _alibi(self, dtype: torch.dtype) -> Tensor:
        queries, keys = self.keep.shape[-2:]
        distance = torch.arange(keys)[None] - torch.arange(queries)[:, None] - (keys - queries)
        slopes = 2.0 ** -(1 + torch.arange(self.heads))
        return (slopes[:, None, None] * distance)[None].to(dtype)


def mask_of(
    spec: Spec,
    batch: int,
    heads: int,
    queries: int,
    columns: Tensor,
    padding: Tensor,
    first: int = 0,
) -> Mask | None:
    """The mask of a call whose first query stands at ``first``.

    ``columns`` are the positions of the keys, −1 where a slot is empty; ``padding`` counts the
    positions at the edge of each sequence that are padding.
    """
    keep = _pattern(spec, batch, heads, queries, columns, padding, first)
    if keep is None and not bool((columns < 0).any()):
        return None
    if keep is None:
        keep = torch.ones(1, 1, queries, len(columns), dtype=torch.bool)
    keep = keep & (columns >= 0)
    how = (spec.hidden_by, spec.mask_step, spec.mask_axes, spec.seed)
    return Mask(keep, *how, heads, batch, spec.pattern)


def _pattern(
    spec: Spec,
    batch: int,
    heads: int,
    queries: int,
    columns: Tensor,
    padding: Tensor,
    first: int,
) -> Tensor | None:
    chance = torch.Generator().manual_seed(spec.seed + 1)
    rows = torch.arange(first, first + queries)[:, None]
    causal = (columns[None] <= rows)[None, None]
    left = (columns >= padding[:, None])[:, None, None]
    right = (columns < int(columns.max()) + 1 - padding[:, None])[:, None, None]
    match spec.pattern:
        case "causal":
            return causal
        case "left padding":
            return left.expand(batch, 1, queries, -1)
        case "right padding":
            return right.expand(batch, 1, queries, -1)
        case "causal + left padding":
            return causal & left
        case "scattered" | "blind rows":
            several = heads if spec.mask_axes == 3 and spec.softmax != "flex_attention" else 1
            keep = torch.rand(1, several, queries, len(columns), generator=chance) < 0.6
            keep[..., 0] |= ~keep.any(dim=-1)
            if spec.pattern == "blind rows":
                keep[..., queries // 2 : queries // 2 + 2, :] = False
            return keep
    return None


def filled(scores: Tensor, mask: Tensor, number: float, step: str) -> Tensor:
    """Hidden scores replaced by a number; ``mask`` is True where a query may attend."""
    if step == "masked_fill":
        return scores.masked_fill(~mask, number)
    if step == "masked_fill_":
        return scores.masked_fill_(~mask, number)
    if step == "where":
        return torch.where(mask, scores, number)
    scores[~mask.expand_as(scores)] = number
    return scores
