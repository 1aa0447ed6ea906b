"""The fast path: the same numbers as ``steps.py``, by the best kernel for the case.

This is the one place where a kernel is chosen:

=====================================================  =======================================
case                                                   kernel
=====================================================  =======================================
one or a few queries over a long cache, all visible    ``decode.py``
few keys, without a gradient                           ``three_products.py``
all keys visible, causal masks, windows; softcap       ``tiles.py``, ``tile_gradients.py``
other softcaps, or a bias that learns                  the plain steps, block after block
under ``torch.func`` (vmap, jvp, grad)                 the plain steps, or torch's own choice
anything else on a CPU                                 torch's flash kernel, block after block
anything else elsewhere                                ``F.scaled_dot_product_attention``
=====================================================  =======================================

The first two have a lean way through as well (:func:`lean_output`), without the checks that explain
what is wrong with the arguments: those take as long as a short computation.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.nn import functional

from clearhead.attention.blocks import added_to_scores, is_one_block, plain_blocks, plain_output
from clearhead.attention.call import CAUSAL, Call
from clearhead.attention.decode import (
    MOST_QUERIES_UNFUSED,
    decode_applies,
    decode_attention,
    decode_step,
)
from clearhead.attention.flash import flash, one_width, plain_flash
from clearhead.attention.masks import WHOLE, Band
from clearhead.attention.three_products import (
    short_attention,
    three_products,
    three_products_apply,
)
from clearhead.attention.tile_function import plain_tiled, tiled
from clearhead.attention.tile_gradients import gradients_apply
from clearhead.attention.tiles import tiles_apply
from clearhead.kernels.plain_tensors import has_tangents, is_transformed


def lean_output(
    query: Tensor, key: Tensor, value: Tensor, scale: float | None, causal: bool
) -> Tensor | None:
    """The output of a call without any option but ``causal``, where a kernel has a lean way
    through; None if not, or if the result is not finite: :func:`fast_output` follows the checks.
    """
    output = decode_step(query, key, value, scale)
    if output is None:
        output = short_attention(query, key, value, scale, causal, _short_trained)
    return output


def _short_trained(query: Tensor, key: Tensor, value: Tensor, causal: bool, scale: float) -> Tensor:
    """A short text whose gradient is wanted: by the quicker kernel."""
    band = CAUSAL.band if causal else WHOLE
    if band is not None and _are_tiled(query, key, value, band, None, trained=True):
        return plain_tiled(query, key, value, causal, scale)
    return plain_flash(query, key, value, causal, scale)


def fast_output(call: Call) -> tuple[Tensor, Tensor | None]:
    """Output (batch, head, query, value_dim) of a checked call, and, where the kernel tells it,
    the log-sum-exp (batch, head, query) of the scores (0 for a query that sees nothing)."""
    if call.query.shape[2] == 1 and call.mask is not None:
        call = call.narrowed(range(1))  # a window leaves its keys, all of them visible
    if call.query.numel() == 0 or call.value.numel() == 0:
        return plain_output(call), None  # zeros, or nothing at all, but with a gradient
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
    band = _tiled_band(call)
    if band is not None:
        return tiled(call, band)
    bias_learns = call.bias is not None and call.bias.requires_grad and call.wants_gradient
    on_cpu = call.query.device.type == "cpu"
    if call.softcap is not None or bias_learns or (call.sinks is not None and not on_cpu):
        return plain_blocks(call), None
    if not on_cpu:
        return portable(call), None
    padded = one_width(call)
    band = _tiled_band(padded)
    output, logsum = flash(padded) if band is None else tiled(padded, band)
    narrower = call.value.shape[3] < padded.value.shape[3]
    return output[..., : call.value.shape[3]] if narrower else output, logsum


def _tiled_band(call: Call) -> Band | None:
    """The visible keys of each query, if ``tiles.py`` computes the call."""
    band, trained = call.band, call.wants_gradient
    if band is None:
        return None
    tiled = _are_tiled(call.query, call.key, call.value, band, call.softcap, trained=trained)
    return band if tiled else None


def _are_tiled(
    query: Tensor, key: Tensor, value: Tensor, band: Band, softcap: float | None, *, trained: bool
) -> bool:
    """True if ``tiles.py`` computes these tensors, and ``tile_gradients.py`` their gradients."""
    applies = tiles_apply(query, key, value, band, softcap, trained=trained)
    return applies and (not trained or gradients_apply())


def _is_plain_or_causal(call: Call) -> bool:
    """True if there is no option but the causal mask, and autograd does not record the call."""
    if call.bias is not None or call.softcap is not None or call.sinks is not None:
        return False
    return (call.mask is None or call.mask is CAUSAL) and not call.wants_gradient


def _transformed(call: Call) -> Tensor:
    """By operations that vmap, jvp and grad of ``torch.func`` know."""
    optioned = any(option is not None for option in (call.softcap, call.sinks, call.bias))
    return plain_output(call) if optioned or has_tangents() else portable(call)


def portable(call: Call) -> Tensor:
    """torch's own choice of kernel, on any device."""
    columns, added = range(call.key.shape[2]), None
    if not is_one_block(call):
        columns, added = added_to_scores(call, range(call.query.shape[2]))
    keys = slice(columns.start, columns.stop)
    return functional.scaled_dot_product_attention(
        call.query, call.key[:, :, keys], call.value[:, :, keys],
        attn_mask=None if added is None else added.to(call.query.dtype),
        is_causal=is_one_block(call) and call.mask is not None,
        scale=call.scale, enable_gqa=call.group > 1,
    )  # fmt: skip
