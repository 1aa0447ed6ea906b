"""The weights of a call, plainly, in float64, from what the module multiplied."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from tests.trace.generated.attention import LAMBDA, Attention
from tests.trace.generated.entry import Entry
from tests.trace.generated.softmaxes import CAP
from tests.trace.generated.spec import Spec

CLOSE = 1e-6  # what a weight may differ by, in float32 and float64
Pair = tuple[torch.dtype, torch.dtype]  # in which a mask is made, and in which it is added
FAR_BELOW = -1000.0  # a row was hidden by a finite number if it is so far below its own scores


@dataclass(frozen=True)
class Expected:
    """The weights of one call, (batch, head, query, key), and how near one must come to them."""

    weights: Tensor
    bound: Tensor  # (batch, head, query, 1)
    blind: Tensor  # (batch, head, query): the model's own weights are NaN there
    before: tuple[Tensor, ...] = ()  # softmaxes that were combined into the weights afterwards
    own: Tensor | None = None  # the module's own weights, as it rounded them
    own_before: tuple[Tensor, ...] = ()  # and its own softmaxes
    rounding: Tensor | None = None  # what rounding does to them, shaped as ``bound``

    def not_exact(self) -> Expected:
        """What a record that is not called exact has to hold: rows of NaN may be anything."""
        return replace(self, bound=self.bound.masked_fill(self.blind[..., None], torch.inf))

    def placed(self, columns: Tensor, width: int) -> Expected:
        """The same with every key where its position is, not where the cache keeps it."""
        weights = self.weights.new_zeros(*self.weights.shape[:3], width)
        there = columns >= 0
        weights[..., columns[there]] = self.weights[..., there]
        return replace(self, weights=weights, before=(), own=None, own_before=())


def expected(spec: Spec, module: torch.nn.Module, entry: Entry) -> Expected:
    """The reference of one call. Masks are added as the model adds them, in its precision."""
    own = entry.query.dtype
    found = [_expected(spec, module, entry, pair) for pair in _precisions(own)]
    dropped = spec.mode == "train, dropout"
    if entry.weights is None and (entry.output is None or dropped):
        return _undecided(found)
    weights = None if entry.weights is None else entry.weights.double()
    nearest = min(found, key=lambda one: _distance(one, entry))
    return replace(nearest, own=weights, own_before=tuple(map(Tensor.double, entry.softmaxes)))


def _undecided(found: list[Expected]) -> Expected:
    """Nothing tells in which precision a mask was added: rows that depend on it may be anything."""
    first = found[0]
    apart = [(one.weights - first.weights).abs() > first.bound for one in found]
    unsure = torch.stack(apart).any(dim=0).any(dim=-1, keepdim=True)
    return replace(first, bound=first.bound.masked_fill(unsure, torch.inf))


def _precisions(own: torch.dtype) -> list[Pair]:
    """In which precision a mask is made and added: kernels and autocast widen half precision.

    Which of them it was, the module's own weights or output tell.
    """
    if own not in (torch.bfloat16, torch.float16):
        return [(own, own)]
    return [(own, own), (own, torch.float32), (torch.float32, torch.float32)]


def _distance(one: Expected, entry: Entry) -> float:
    """How far the reference is from what the module computed."""
    if entry.weights is not None:
        off = (one.weights - entry.weights.double()).abs()
    elif entry.output is not None:
        ours = one.weights @ repeated(entry.value.double(), entry.output.shape[1])
        off = (ours - entry.output.double()).abs()
    else:
        return 0.0
    return float(torch.where(one.blind[..., None], 0.0, off.nan_to_num(9e9)).max())


def repeated(part: Tensor, heads: int) -> Tensor:
    """Shared keys or values, once for each head."""
    return part.repeat_interleave(heads // part.shape[1], dim=1)


def _expected(spec: Spec, module: torch.nn.Module, entry: Entry, pair: Pair) -> Expected:
    query, key = entry.query.double(), entry.key.double()
    if spec.softmax == "differential":
        (q1, q2), (k1, k2) = query.chunk(2, dim=1), key.chunk(2, dim=1)
        first = _one(spec, module, replace(entry, query=q1, key=k1), pair)
        second = _one(spec, module, replace(entry, query=q2, key=k2), pair)
        both = (first.weights, second.weights)
        bound = first.bound + second.bound
        return replace(first, weights=both[0] - LAMBDA * both[1], bound=bound, before=both)
    return _one(spec, module, replace(entry, query=query, key=key), pair)


def _one(spec: Spec, module: torch.nn.Module, entry: Entry, pair: Pair) -> Expected:
    key = repeated(entry.key, entry.query.shape[1])
    scores = (entry.query @ key.transpose(-1, -2)) * entry.scale
    talking = module.talking.detach().double() if isinstance(module, Attention) else None
    if spec.softmax == "temperature" and isinstance(module, Attention):
        scores = scores * module.temperature.detach().double()[None, :, None, None]
    if spec.softmax == "talking before":
        scores = torch.einsum("bhqk,hg->bgqk", scores, talking)
    if spec.softmax == "tanh cap":
        scores = CAP * torch.tanh(scores / CAP)
    if spec.softmax == "clamp":
        scores = scores.clamp(-CAP, CAP)
    size = _size(scores)
    scores = _masked(scores, entry, pair)
    weights = _softmax(spec, scores)
    nothing = scores.isneginf().all(dim=-1)
    if spec.fused or spec.softmax in ("nan_to_num", "flex_attention"):
        weights = weights.masked_fill(nothing[..., None], 0.0)
    blind = weights.isnan().any(dim=-1)
    weights = weights.masked_fill(blind[..., None], 0.0)
    bound = _bound(scores, size, weights, pair[1], entry.value.dtype)
    if spec.whole:  # its queries and keys are projected apart from the module
        bound = bound + 8 * torch.finfo(entry.value.dtype).eps * size
    before: tuple[Tensor, ...] = ()
    if spec.softmax == "talking after":
        before = (weights,)
        weights = torch.einsum("bhqk,hg->bgqk", weights, talking)
        blind = blind.any(dim=1, keepdim=True).expand_as(blind)
        weights = weights.masked_fill(blind[..., None], 0.0)
        bound = bound * max(1.0, float(weights.abs().max()))
    return Expected(
        weights, bound, blind, before, rounding=_steps(entry.value.dtype, size, weights)
    )


def _softmax(spec: Spec, scores: Tensor) -> Tensor:
    if spec.softmax == "off by one":
        return scores.exp() / (1 + scores.exp().sum(dim=-1, keepdim=True))
    return torch.softmax(scores, dim=-1)


def _size(scores: Tensor) -> Tensor:
    """The largest score of each row, whatever its sign."""
    return scores.abs().amax(dim=-1, keepdim=True).nan_to_num(0.0)


def _masked(scores: Tensor, entry: Entry, pair: Pair) -> Tensor:
    mask, (given, dtype) = entry.mask, pair
    if mask is None:
        return scores
    if mask.fills:
        return torch.where(mask.keep, scores, mask.number(given))
    added = mask.added(given)
    if mask.hidden_by == "bool":  # torch adds −∞, so that NaN stays NaN
        return scores + torch.zeros_like(scores).masked_fill(~mask.keep, -torch.inf)
    exact = scores + added.double()
    rounded = (scores.to(dtype) + added.to(dtype)).double()
    hidden = exact.amax(dim=-1, keepdim=True) < FAR_BELOW - _size(scores)
    return torch.where(hidden, rounded, exact)


def _bound(
    scores: Tensor, size: Tensor, weights: Tensor, added_in: torch.dtype, own: torch.dtype
) -> Tensor:
    """What rounding may do to a row: nothing in float32 but where a mask was added to all of it."""
    best = scores.amax(dim=-1, keepdim=True).nan_to_num(0.0)
    step = torch.finfo(added_in).eps * best.abs()
    unsure = (best < FAR_BELOW - size) & (step > CLOSE) & (step < 1)
    bound = torch.full_like(best, CLOSE) + torch.where(unsure, 2 * step, 0.0)
    if own in (torch.float16, torch.bfloat16):
        bound = bound + _steps(own, size, weights)
    return bound


def _steps(own: torch.dtype, size: Tensor, weights: Tensor) -> Tensor:
    """What a product of that size, rounded to a format, does to the largest weight of its row."""
    return torch.finfo(own).eps * (2 + 4 * size) * weights.amax(dim=-1, keepdim=True)
