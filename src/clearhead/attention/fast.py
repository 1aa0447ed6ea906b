"""The fast path: the same numbers as ``steps.py``, by the best kernel for the case.

=====================================================  =======================================
case                                                   kernel
=====================================================  =======================================
one or a few queries over a long cache, all visible    ``decode.py``
few keys                                               ``three_products.py``
all keys visible, causal masks, windows; softcap       ``tiles.py``; flash for the gradient
other softcaps, or a bias that learns                  the plain steps, block after block
under ``torch.func`` (vmap, jvp, grad)                 the plain steps, or torch's own choice
anything else on a CPU                                 torch's flash kernel, block after block
anything else elsewhere                                ``F.scaled_dot_product_attention``
=====================================================  =======================================

A *block* is a run of queries with the keys that they can reach. Masks and biases are only ever
spelled out for one block, so memory grows linearly with length; keys that a window or the causal
mask puts out of reach are never multiplied.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from clearhead.attention.call import CAUSAL, Call
from clearhead.attention.decode import MOST_QUERIES_UNFUSED, decode_applies, decode_attention
from clearhead.attention.masks import Band
from clearhead.attention.plain_tensors import has_tangents, is_transformed
from clearhead.attention.steps import steps_of
from clearhead.attention.three_products import three_products, three_products_apply
from clearhead.attention.tiles import tile_attention, tiles_apply

_FLASH = torch._scaled_dot_product_flash_attention_for_cpu  # the binding: quicker than torch.ops
_FLASH_BACKWARD = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default

BLOCK_NUMBERS = 1 << 22  # numbers of the map that are spelled out at once: 16 MB in float32
SHORTEST_BLOCK, LONGEST_BLOCK = 128, 512  # queries


def fast_output(call: Call) -> tuple[Tensor, Tensor | None]:
    """Output (batch, head, query, value_dim) of a checked call, and, where the kernel tells it,
    the log-sum-exp (batch, head, query) of the scores (0 for a query that sees nothing)."""
    if call.query.shape[2] == 1 and call.mask is not None:
        call = call.narrowed(range(1))  # a window leaves its keys, all of them visible
    if call.query.numel() == 0 or call.value.numel() == 0:
        return _plain_output(call), None  # zeros, or nothing at all, but with a gradient
    if is_transformed():
        return _transformed(call), None
    if call.query.shape[2] <= MOST_QUERIES_UNFUSED and call.mask is None and call.bias is None:
        query, key, value = call.query, call.key, call.value
        options: dict[str, Any] = {"softcap": call.softcap, "sinks": call.sinks}
        if decode_applies(query, key, value, **options):
            return decode_attention(query, key, value, scale=call.scale, **options), None
    if _is_plain_or_causal(call):
        query, key, value, causal = call.query, call.key, call.value, call.mask is not None
        if three_products_apply(query, key, causal):
            return three_products(query, key, value, scale=call.scale, causal=causal), None
    if not call.wants_gradient and _tiled_band(call) is not None:
        return _fused_forward(call.query, call.key, call.value, call.sinks, call)[:2]
    bias_learns = call.bias is not None and call.bias.requires_grad and call.wants_gradient
    on_cpu = call.query.device.type == "cpu"
    if call.softcap is not None or bias_learns or (call.sinks is not None and not on_cpu):
        return _plain_blocks(call), None
    return _flash(call) if on_cpu else (_portable(call), None)


def _is_plain_or_causal(call: Call) -> bool:
    """No option but the causal mask, and nobody who differentiates."""
    if call.bias is not None or call.softcap is not None or call.sinks is not None:
        return False
    return (call.mask is None or call.mask is CAUSAL) and not call.wants_gradient


def _flash(call: Call) -> tuple[Tensor, Tensor]:
    """torch's flash kernel. It wants keys and values of one width: pad the narrower with zeros."""
    value_dim, spare = call.value.shape[3], call.query.shape[3] - call.value.shape[3]
    query, key, value = call.query, call.key, call.value
    if not query.stride(3) == key.stride(3) == value.stride(3) == 1:
        # The kernel takes it for granted that a vector's numbers lie side by side in memory.
        query, key, value = query.contiguous(), key.contiguous(), value.contiguous()
    if spare > 0:
        value = functional.pad(value, (0, spare))
    elif spare < 0:
        query, key = functional.pad(query, (0, -spare)), functional.pad(key, (0, -spare))
    call = replace(call, query=query, key=key, value=value)
    plain = call.sinks is None and _is_one_block(call)
    if call.wants_gradient and (not plain or _tiled_band(call) is not None):
        output, logsum = _Fused.apply(query, key, value, call.sinks, call)  # type: ignore[no-untyped-call]
    elif plain:
        causal = call.mask is not None
        output, logsum = _FLASH(query, key, value, 0.0, causal, scale=call.scale)
    else:
        output, logsum, _ = _fused_forward(query, key, value, call.sinks, call)
    return output[..., :value_dim] if spare > 0 else output, logsum


def _tiled_band(call: Call) -> Band | None:
    """What each query sees, if ``tiles.py`` computes the call, or its forward."""
    band = call.band
    if band is None or not tiles_apply(call.query, call.key, call.value, band, call.softcap):
        return None
    return band


def _is_one_block(call: Call) -> bool:
    """The kernel knows the mask itself: none, or causal over as many keys as queries."""
    if call.bias is not None:
        return False
    return call.mask is None or (call.mask is CAUSAL and call.query.shape[2] == call.key.shape[2])


def _fused_forward(
    query: Tensor, key: Tensor, value: Tensor, sinks: Tensor | None, call: Call
) -> tuple[Tensor, Tensor, Tensor]:
    """Output of all queries; log-sum-exp over the keys; and with the sinks."""
    band = _tiled_band(call)
    if band is not None:
        output, logsum = tile_attention(
            query, key, value, scale=call.scale, band=band, softcap=call.softcap
        )
    else:
        output, logsum = _flash_blocks(query, key, value, call)
    if sinks is None:
        return output, logsum, logsum
    total = torch.logaddexp(logsum, sinks.to(logsum.dtype)[:, None])
    output *= torch.exp(logsum - total).unsqueeze(-1)
    return output, logsum, total


def _flash_blocks(query: Tensor, key: Tensor, value: Tensor, call: Call) -> tuple[Tensor, Tensor]:
    """torch's flash kernel, block after block."""
    output = query.new_zeros(*query.shape[:3], value.shape[3])
    wide = torch.promote_types(query.dtype, torch.float32)
    logsum = query.new_zeros(query.shape[:3], dtype=wide)
    for rows, columns, causal, added in _blocks(call):
        out, log = _FLASH(
            query[:, :, rows], key[:, :, columns], value[:, :, columns], 0.0, causal,
            attn_mask=added, scale=call.scale,
        )  # fmt: skip
        output[:, :, rows], logsum[:, :, rows] = out, log
    return output, logsum


class _Fused(torch.autograd.Function):
    """Attention with masks, biases and sinks, by tiles or flash, with flash's gradient in blocks.

    Sinks need no kernel of their own: with the log-sum-exp over keys *and* sink in place of the
    one over keys, the backward formula ds = p·(dp − Σ output·gradient) holds as it stands.
    """

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, sinks: Tensor | None, call: Call
    ) -> tuple[Tensor, Tensor]:
        output, logsum, total = _fused_forward(query, key, value, sinks, call)
        ctx.save_for_backward(query, key, value, sinks, output, total)
        ctx.mark_non_differentiable(logsum)
        ctx.call = call
        return output, logsum

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        gradient = gradients[0]
        if gradient.stride(3) != 1:  # as of a sum: one number, repeated
            gradient = gradient.contiguous()
        query, key, value, sinks, output, total = ctx.saved_tensors
        if sinks is None and _is_one_block(ctx.call):
            of_inputs = _FLASH_BACKWARD(
                gradient, query, key, value, output, total, 0.0, ctx.call.mask is not None,
                scale=ctx.call.scale,
            )  # fmt: skip
            return *of_inputs, None, None
        to_query, to_key, to_value = (torch.zeros_like(part) for part in (query, key, value))
        for rows, columns, causal, added in _blocks(ctx.call):
            by_query, by_key, by_value = _FLASH_BACKWARD(
                gradient[:, :, rows], query[:, :, rows], key[:, :, columns],
                value[:, :, columns], output[:, :, rows], total[:, :, rows], 0.0, causal,
                attn_mask=added, scale=ctx.call.scale,
            )  # fmt: skip
            to_query[:, :, rows] = by_query
            to_key[:, :, columns] += by_key
            to_value[:, :, columns] += by_value
        to_sinks = None
        if sinks is not None:
            share = torch.exp(sinks[:, None] - total)  # of the sink, in each query's denominator
            to_sinks = -(share * (gradient * output).sum(-1)).sum((0, 2)).to(sinks.dtype)
        return to_query, to_key, to_value, to_sinks, None


def _blocks(call: Call) -> Iterator[tuple[slice, slice, bool, Tensor | None]]:
    """Runs of queries with the keys they reach: rows, columns, causal?, what to add to scores."""
    if _is_one_block(call):
        yield slice(None), slice(None), call.mask is not None, None
        return
    queries, length = call.query.shape[2], _block_length(call)
    for start in range(0, queries, length):
        rows = range(start, min(start + length, queries))
        columns, added = _added(call, rows)
        if len(columns):
            yield slice(rows.start, rows.stop), slice(columns.start, columns.stop), False, added


def _added(call: Call, rows: range) -> tuple[range, Tensor | None]:
    """The keys in reach of these queries, and mask and bias as one tensor to add to the scores."""
    columns, seen, bias = call.block(rows)
    if bias is not None and bias.dtype != call.query.dtype:
        # Beside half-precision states the kernel also takes a float32 bias: nothing is rounded.
        bias = bias.to(torch.promote_types(call.query.dtype, torch.float32))
    if seen is None:
        return columns, None if bias is None else bias.detach()
    zero = call.query.new_zeros(()) if bias is None else bias.detach()
    return columns, torch.where(seen, zero, -torch.inf)


def _block_length(call: Call, heads_at_once: int = 1) -> int:
    """How many queries to a block: about as many as the keys that one of them reaches."""
    middle = range(call.query.shape[2] // 2, call.query.shape[2] // 2 + 1)
    columns, seen, bias = call.block(middle)
    spelled = max(
        1 if seen is None else seen.numel(), 1 if bias is None else bias.numel(), len(columns)
    )
    affordable = BLOCK_NUMBERS // (spelled * heads_at_once)
    return max(1, min(affordable, LONGEST_BLOCK, max(len(columns), SHORTEST_BLOCK)))


def _plain_blocks(call: Call) -> Tensor:
    """The plain steps, block after block; for the gradient each block is computed again."""
    queries = call.query.shape[2]
    length = _block_length(call, heads_at_once=call.query.shape[0] * call.query.shape[1])
    runs = [range(start, min(start + length, queries)) for start in range(0, queries, length)]
    if call.wants_gradient:
        parts = (call.narrowed(rows) for rows in runs)
        kept = [checkpoint(_plain_output, part, use_reentrant=False) for part in parts]
        return torch.cat(kept, dim=2)
    # Written into one tensor: small results kept between large temporary ones would pin the heap.
    output = call.query.new_empty(*call.query.shape[:3], call.value.shape[3])
    for rows in runs:
        output[:, :, rows.start : rows.stop] = _plain_output(call.narrowed(rows))
    return output


def _plain_output(call: Call) -> Tensor:
    """(batch, head, query, value_dim), whatever axes the caller gave."""
    return steps_of(replace(call, leading=call.query.shape[:1], headless=False)).output


def _transformed(call: Call) -> Tensor:
    """By operations that vmap, jvp and grad of ``torch.func`` know."""
    optioned = any(option is not None for option in (call.softcap, call.sinks, call.bias))
    return _plain_output(call) if optioned or has_tangents() else _portable(call)


def _portable(call: Call) -> Tensor:
    """torch's own choice of kernel, on any device."""
    columns, added = range(call.key.shape[2]), None
    if not _is_one_block(call):
        columns, added = _added(call, range(call.query.shape[2]))
    keys = slice(columns.start, columns.stop)
    return functional.scaled_dot_product_attention(
        call.query, call.key[:, :, keys], call.value[:, :, keys],
        attn_mask=None if added is None else added.to(call.query.dtype),
        is_causal=_is_one_block(call) and call.mask is not None,
        scale=call.scale, enable_gqa=call.group > 1,
    )  # fmt: skip
