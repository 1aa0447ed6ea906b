"""What torch's fused attention kernels computed, as observed calls."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from clearhead.trace.watching.observed_call import ObservedCall


def flash_call(given: dict[str, Any], result: Any) -> ObservedCall:
    """The flash kernel for CPUs, which gives the log-sum-exp for free."""
    return _observed(given, result[0], result[1])


def other_device_call(given: dict[str, Any], result: Any) -> ObservedCall:
    """The kernels of other devices: some pad their log-sum-exps, so ours are computed."""
    return _observed(given, result[0], None)


def _observed(given: dict[str, Any], output: Tensor, logsum: Tensor | None) -> ObservedCall:
    """Arguments that a caller leaves at their defaults are not given."""
    query, scale = given["query"], given.get("scale")
    mask = given.get("attn_mask")
    mask = given.get("attn_bias") if mask is None else mask
    return ObservedCall(
        query,
        given["key"],
        given["value"],
        scale=query.shape[-1] ** -0.5 if scale is None else scale,
        output=output,
        logsum=logsum,
        mask=mask if mask is None or mask.ndim == 4 else mask[(None,) * (4 - mask.ndim)],
        from_start=given.get("is_causal", False),
        dropout=given.get("dropout_p", 0.0),
        fused=True,
    )
