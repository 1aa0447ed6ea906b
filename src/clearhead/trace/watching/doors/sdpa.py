"""The door at ``F.scaled_dot_product_attention``: the same kernel, and its log-sum-exp for free."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from clearhead.errors import InputError
from clearhead.trace.watching.observed_call import ACTIVE, ObservedCall

_FLASH = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
_FLASH_CHOICE = 1  # torch.nn.attention.SDPBackend.FLASH_ATTENTION


def sdpa(function: Callable[..., Tensor], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    """Run the call as torch would run it, and notify the watchers."""
    return _sdpa(function, *args, **kwargs)


def _sdpa(
    function: Callable[..., Tensor],
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    if any(part.is_nested for part in (query, key, value)):
        raise InputError(
            "watch cannot follow nested tensors: their rows have different lengths.",
            hint="pad the batch, and mask the padding.",
        )
    options: dict[str, Any] = {"dropout_p": dropout_p, "is_causal": is_causal, "scale": scale}
    output: Tensor
    logsum: Tensor | None = None
    if query.device.type == "cpu" and _takes_flash(
        query, key, value, attn_mask, enable_gqa=enable_gqa, **options
    ):
        mask = attn_mask
        if mask is not None and mask.dtype == torch.bool:  # as torch itself spells it out
            mask = torch.zeros_like(mask, dtype=query.dtype).masked_fill_(~mask, -torch.inf)
        output, logsum = _FLASH(
            query, key, value, dropout_p, is_causal, attn_mask=mask, scale=scale
        )
    else:
        output = function(query, key, value, attn_mask=attn_mask, enable_gqa=enable_gqa, **options)
    ACTIVE.notify(_observed_call(query, key, value, attn_mask, output, logsum, **options))
    return output


def _takes_flash(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, **options: Any
) -> bool:
    """True if torch itself would choose its flash kernel for CPUs."""
    if query.ndim != 4:
        return False
    choice = torch._fused_sdp_choice(query, key, value, attn_mask, **options)
    return choice == _FLASH_CHOICE


def _observed_call(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    output: Tensor,
    logsum: Tensor | None,
    *,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
) -> ObservedCall:
    """The call with axes (batch, head, …): fewer axes are one head, more are a larger batch."""
    if mask is not None:
        mask = _four_axes_mask(mask, query.shape)
    query, key, value, output = (_four_axes(part) for part in (query, key, value, output))
    if key.shape[0] != query.shape[0]:
        key, value = (part.expand(query.shape[0], -1, -1, -1) for part in (key, value))
    return ObservedCall(
        query,
        key,
        value,
        scale=query.shape[-1] ** -0.5 if scale is None else scale,
        output=output,
        logsum=logsum,
        mask=mask,
        from_start=is_causal,
        dropout=dropout_p,
        fused=True,
    )


def _four_axes(part: Tensor) -> Tensor:
    if part.ndim == 4:
        return part
    if part.ndim < 4:
        return part[(None,) * (3 - part.ndim)][:, None]
    return part.flatten(0, part.ndim - 4)


def _four_axes_mask(mask: Tensor, query: torch.Size) -> Tensor:
    if len(query) <= 3:
        return mask[(None,) * (3 - mask.ndim)][:, None]
    if mask.ndim <= 4 and len(query) == 4:
        return mask[(None,) * (4 - mask.ndim)]
    mask = mask[(None,) * (len(query) - mask.ndim)].expand(*query[:-3], *mask.shape[-3:])
    return mask.flatten(0, mask.ndim - 4)
