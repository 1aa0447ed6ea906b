"""Softmax as models write it."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.nn.functional import scaled_dot_product_attention

CAP = 2.7
LOG2_E = 1.4426950408889634
alias = functional.scaled_dot_product_attention


def helper(query: Tensor, key: Tensor, value: Tensor, **options: object) -> Tensor:
    """A function around torch's, as codebases that support several kernels have."""
    return alias(query, key, value, **options)  # type: ignore[arg-type]


def fused(way: str, query: Tensor, key: Tensor, value: Tensor, **options: object) -> Tensor:
    """torch's fused attention, by the names under which models call it."""
    if way == "sdpa alias":
        return alias(query, key, value, **options)  # type: ignore[arg-type]
    if way == "sdpa helper":
        return helper(query, key, value, **options)
    if way == "sdpa imported":
        return scaled_dot_product_attention(query, key, value, **options)  # type: ignore[arg-type]
    return functional.scaled_dot_product_attention(query, key, value, **options)  # type: ignore[arg-type]


def flexed(query: Tensor, key: Tensor, value: Tensor, keep: Tensor | None) -> Tensor:
    """torch's flex_attention, not compiled; ``keep`` is (query, key)."""
    block = None
    if keep is not None:
        block = create_block_mask(
            lambda _b, _h, row, column: keep[row, column],
            None,
            None,
            keep.shape[0],
            keep.shape[1],
            "cpu",
        )
    output = flex_attention(query, key, value, block_mask=block)
    assert isinstance(output, Tensor)
    return output


def before_mask(way: str, scores: Tensor) -> Tensor:
    """What some models do to scores before they mask."""
    if way == "tanh cap":
        return CAP * torch.tanh(scores / CAP)
    return scores.clamp(-CAP, CAP) if way == "clamp" else scores


def softmax(way: str, scores: Tensor) -> Tensor:
    """Weights that sum to 1 (or less: off by one)."""
    match way:
        case "torch.softmax":
            return torch.softmax(scores, dim=-1)
        case "tensor.softmax":
            return scores.softmax(-1)
        case "nn.Softmax":
            return nn.Softmax(dim=-1)(scores)  # type: ignore[no-any-return]
        case "exp/sum":
            powers = scores.exp()
            return powers / powers.sum(dim=-1, keepdim=True)
        case "exp/sum − max":
            powers = torch.exp(scores - scores.max(dim=-1, keepdim=True).values)
            return powers / powers.sum(-1, keepdim=True)
        case "exp2/sum":
            powers = torch.exp2((scores - scores.amax(dim=-1, keepdim=True)) * LOG2_E)
            return powers / powers.sum(-1, keepdim=True)
        case "exp − lse":
            return torch.exp(scores - torch.logsumexp(scores, dim=-1, keepdim=True))
        case "log_softmax.exp":
            return functional.log_softmax(scores, dim=-1).exp()
        case "upcast":
            wide = torch.promote_types(scores.dtype, torch.float32)
            return functional.softmax(scores, dim=-1, dtype=wide).to(scores.dtype)
        case "nan_to_num":
            return functional.softmax(scores, dim=-1).nan_to_num(0.0)
        case "off by one":
            powers = torch.exp(scores)
            return powers / (1 + powers.sum(dim=-1, keepdim=True))
    return functional.softmax(scores, dim=-1)
