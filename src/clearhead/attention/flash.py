"""torch's flash kernel for CPUs: masks and biases block after block, sinks, and the gradient."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from clearhead.attention.blocks import blocks, is_one_block, plain_blocks
from clearhead.attention.call import CAUSAL, Call
from clearhead.attention.masks import Band
from clearhead.attention.tiles import tile_attention
from clearhead.kernels.plain_tensors import is_recorded

_FLASH = torch._scaled_dot_product_flash_attention_for_cpu  # the binding: quicker than torch.ops
_FLASH_BACKWARD = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default


def one_width(call: Call) -> Call:
    """The call as the kernel takes it: keys and values of one width, the narrower ones padded with
    zeros, a vector's numbers side by side in memory, and a scale above 0 (the kernel scales the −∞
    of its causal mask as well)."""
    spare = call.query.shape[3] - call.value.shape[3]
    query, key, value, scale = call.query, call.key, call.value, call.scale
    if scale <= 0:
        query, scale = (-query, -scale) if scale < 0 else (query * 0, 1.0)
    if not query.stride(3) == key.stride(3) == value.stride(3) == 1:
        query, key, value = query.contiguous(), key.contiguous(), value.contiguous()
    if spare > 0:
        value = functional.pad(value, (0, spare))
    elif spare < 0:
        query, key = functional.pad(query, (0, -spare)), functional.pad(key, (0, -spare))
    return replace(call, query=query, key=key, value=value, scale=scale)


def flash(call: Call, band: Band | None) -> tuple[Tensor, Tensor]:
    """Output and log-sum-exp of a call of :func:`one_width`.

    With a ``band``, ``tiles.py`` computes the forward of what must be computed in blocks or
    differentiated; the gradient is always flash's.
    """
    query, key, value = call.query, call.key, call.value
    plain = call.sinks is None and is_one_block(call)
    causal = call.mask is not None
    if call.wants_gradient and (not plain or band is not None):
        return _Fused.apply(query, key, value, call.sinks, call, band)  # type: ignore[no-any-return, no-untyped-call]
    if plain and call.wants_gradient and not is_recorded():
        logsums: list[Tensor] = []
        return plain_flash(query, key, value, causal, call.scale, logsums), logsums[0]
    if plain:
        output, logsum = _FLASH(query, key, value, 0.0, causal, scale=call.scale)
        return output, logsum
    return fused_forward(query, key, value, call.sinks, call, band)[:2]


def plain_flash(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    causal: bool,
    scale: float,
    logsum: list[Tensor] | None = None,
) -> Tensor:
    """The kernel as it is, differentiable any number of times; its log-sum-exp joins the list."""
    return _Flash.apply(query, key, value, causal, scale, logsum)  # type: ignore[no-any-return, no-untyped-call]


def fused_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    sinks: Tensor | None,
    call: Call,
    band: Band | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Output of all queries; log-sum-exp over the keys; and with the sinks."""
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
    for rows, columns, causal, added in blocks(call):
        out, log = _FLASH(
            query[:, :, rows], key[:, :, columns], value[:, :, columns], 0.0, causal,
            attn_mask=added, scale=call.scale,
        )  # fmt: skip
        output[:, :, rows], logsum[:, :, rows] = out, log
    return output, logsum


class _Flash(torch.autograd.Function):
    """torch's kernel, which torch itself differentiates once only."""

    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        causal: bool,
        scale: float,
        logsums: list[Tensor] | None,
    ) -> Tensor:
        # One output alone: a second one costs a training step more than this whole function.
        output, logsum = _FLASH(query, key, value, 0.0, causal, scale=scale)
        ctx.save_for_backward(query, key, value, output, logsum)
        ctx.causal, ctx.scale = causal, scale
        if logsums is not None:
            logsums.append(logsum)
        return output

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, output, logsum = ctx.saved_tensors
        if torch.is_grad_enabled():
            mask = CAUSAL if ctx.causal else None
            batch = query.shape[:1]
            call = Call(query, key, value, mask, None, ctx.scale, None, None, batch, False)
            return *_gradients_again(call, gradients[0])[:3], None, None, None
        gradient = gradients[0]
        if gradient.stride(3) != 1:
            gradient = gradient.contiguous()
        of_inputs = _FLASH_BACKWARD(
            gradient, query, key, value, output, logsum, 0.0, ctx.causal, scale=ctx.scale
        )
        return *of_inputs, None, None, None


def _gradients_again(call: Call, gradient: Tensor) -> tuple[Tensor | None, ...]:
    """Gradients of query, key, value and sinks by the plain steps: to be differentiated again."""
    # Views, because one tensor may be query, key and value at once: each has its own gradient.
    inputs = tuple(
        None if tensor is None else tensor.view_as(tensor)
        for tensor in (call.query, call.key, call.value, call.sinks)
    )
    query, key, value, sinks = inputs
    assert query is not None and key is not None and value is not None
    call = replace(call, query=query, key=key, value=value, sinks=sinks)
    learning = [tensor for tensor in inputs if tensor is not None and tensor.requires_grad]
    found = iter(torch.autograd.grad(plain_blocks(call), learning, gradient, create_graph=True))
    return tuple(
        next(found) if tensor is not None and tensor.requires_grad else None for tensor in inputs
    )


class _Fused(torch.autograd.Function):
    """Attention with masks, biases and sinks, by tiles or flash, with flash's gradient in blocks.

    Sinks need no kernel of their own: with the log-sum-exp over keys *and* sink in place of the
    one over keys, the backward formula ds = p·(dp − Σ output·gradient) holds as it stands.
    """

    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        sinks: Tensor | None,
        call: Call,
        band: Band | None,
    ) -> tuple[Tensor, Tensor]:
        output, logsum, total = fused_forward(query, key, value, sinks, call, band)
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
        if torch.is_grad_enabled():
            call = replace(ctx.call, query=query, key=key, value=value, sinks=sinks)
            return *_gradients_again(call, gradient), None, None
        if sinks is None and is_one_block(ctx.call):
            of_inputs = _FLASH_BACKWARD(
                gradient, query, key, value, output, total, 0.0, ctx.call.mask is not None,
                scale=ctx.call.scale,
            )  # fmt: skip
            return *of_inputs, None, None, None
        to_query, to_key, to_value = (torch.zeros_like(part) for part in (query, key, value))
        for rows, columns, causal, added in blocks(ctx.call):
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
        return to_query, to_key, to_value, to_sinks, None, None
