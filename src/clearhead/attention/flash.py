"""torch's flash kernel for CPUs: masks and biases block after block, sinks, and the gradient."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from clearhead.attention.blocks import blocks, is_one_block, plain_gradients
from clearhead.attention.call import CAUSAL, Call
from clearhead.attention.sinks import sink_gradient, with_sinks
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


def flash(call: Call) -> tuple[Tensor, Tensor]:
    """Output and log-sum-exp (over keys alone) of a call of :func:`one_width`."""
    query, key, value = call.query, call.key, call.value
    plain = call.sinks is None and is_one_block(call)
    causal = call.mask is not None
    if call.wants_gradient and not plain:
        return _Fused.apply(query, key, value, call.sinks, call)  # type: ignore[no-any-return, no-untyped-call]
    if plain and call.wants_gradient and not is_recorded():
        logsums: list[Tensor] = []
        return plain_flash(query, key, value, causal, call.scale, logsums), logsums[0]
    if plain:
        output, logsum = _FLASH(query, key, value, 0.0, causal, scale=call.scale)
        return output, logsum
    output, logsum = _flash_blocks(query, key, value, call)
    return with_sinks(output, logsum, call.sinks)[0], logsum


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
            return *plain_gradients(call, gradients[0])[:3], None, None, None
        gradient = gradients[0]
        if gradient.stride(3) != 1:
            gradient = gradient.contiguous()
        of_inputs = _FLASH_BACKWARD(
            gradient, query, key, value, output, logsum, 0.0, ctx.causal, scale=ctx.scale
        )
        return *of_inputs, None, None, None


class _Fused(torch.autograd.Function):
    """Attention with masks, biases and sinks, block after block (sinks: see tile_function.py)."""

    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        sinks: Tensor | None,
        call: Call,
    ) -> tuple[Tensor, Tensor]:
        output, logsum = _flash_blocks(query, key, value, call)
        output, total = with_sinks(output, logsum, sinks)
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
            return *plain_gradients(call, gradient), None
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
        to_sinks = None if sinks is None else sink_gradient(gradient, output, total, sinks)
        return to_query, to_key, to_value, to_sinks, None
