"""Attention over tiles as one function of autograd: ``tiles.py`` there, ``tile_gradients.py`` back.

Sinks need no kernel of their own: with the log-sum-exp over keys *and* sink in place of the one
over keys, the formula of the gradient, ds = p·(dp − Σ output·gradient), holds as it stands.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from clearhead.attention.blocks import plain_gradients
from clearhead.attention.call import CAUSAL, Call
from clearhead.attention.masks import WHOLE, Band, Mask
from clearhead.attention.sinks import sink_gradient, with_sinks
from clearhead.attention.tile_gradients import tile_gradients
from clearhead.attention.tiles import tile_attention
from clearhead.kernels.plain_tensors import has_memory, is_float


def tiled(call: Call, band: Band) -> tuple[Tensor, Tensor]:
    """Output and log-sum-exp (over keys alone) of a call that sees a band of its keys."""
    query, key, value, sinks = call.query, call.key, call.value, call.sinks
    if call.wants_gradient:
        logsums: list[Tensor] = []
        output: Tensor = _Tiled.apply(  # type: ignore[no-untyped-call]
            query, key, value, sinks, call.mask, band, call.scale, call.softcap, logsums
        )
        return output, logsums[0]
    output, logsum = tile_attention(
        query, key, value, scale=call.scale, band=band, softcap=call.softcap
    )
    return with_sinks(output, logsum, sinks)[0], logsum


def plain_tiled(query: Tensor, key: Tensor, value: Tensor, causal: bool, scale: float) -> Tensor:
    """The output of a call without any option but the causal mask, to be differentiated."""
    mask, band = (CAUSAL, CAUSAL.band) if causal else (None, WHOLE)
    return _Tiled.apply(query, key, value, None, mask, band, scale, None, None)  # type: ignore[no-any-return, no-untyped-call]


class _Tiled(torch.autograd.Function):
    """The two kernels; the plain steps where the gradient itself is differentiated or batched."""

    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        sinks: Tensor | None,
        mask: Mask | None,
        band: Band,
        scale: float,
        softcap: float | None,
        logsums: list[Tensor] | None,
    ) -> Tensor:
        # One output alone: a second one costs a training step more than this whole function.
        output, logsum = tile_attention(query, key, value, scale=scale, band=band, softcap=softcap)
        output, total = with_sinks(output, logsum, sinks)
        ctx.save_for_backward(query, key, value, sinks, output, total)
        ctx.mask, ctx.band, ctx.scale, ctx.softcap = mask, band, scale, softcap
        if logsums is not None:
            logsums.append(logsum)
        return output

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        gradient = gradients[0]
        query, key, value, sinks, output, total = ctx.saved_tensors
        if torch.is_grad_enabled() or not has_memory(gradient):
            batch = query.shape[:1]
            call = Call(
                query, key, value, ctx.mask, None, ctx.scale, ctx.softcap, sinks, batch, False
            )
            with torch.enable_grad():
                again = plain_gradients(call, gradient)
            return *again, None, None, None, None, None
        if not is_float(gradient):  # as of a sum: one number, repeated
            gradient = gradient.contiguous()
        of_inputs = tile_gradients(
            gradient, query, key, value, output, total,
            scale=ctx.scale, band=ctx.band, softcap=ctx.softcap,
        )  # fmt: skip
        to_sinks = None if sinks is None else sink_gradient(gradient, output, total, sinks)
        return *of_inputs, to_sinks, None, None, None, None, None
