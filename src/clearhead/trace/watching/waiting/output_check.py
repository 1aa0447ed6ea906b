"""Steps that waited, put together: what the model gave must be what the formula gives."""

from __future__ import annotations

from dataclasses import replace

import torch

from clearhead.attention.call import CAUSAL
from clearhead.trace.watching.log_sum_exp import up_to_itself
from clearhead.trace.watching.observed_call import ObservedCall
from clearhead.trace.watching.sample_check import OUTPUT_TOLERANCE, explains_output, matches_model

_FLASH = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default


def compared(observed: ObservedCall) -> ObservedCall | None:
    """The call, once all of its rows were compared; None if some are not what they should be."""
    if not observed.unchecked:
        return observed
    if observed.weights is not None:
        return observed if matches_model(observed, full=True) else None
    if observed.mask is not None or observed.query.size(3) != _width(observed):
        return observed if explains_output(observed) else None
    return _with_sums(observed)


def _with_sums(observed: ObservedCall) -> ObservedCall | None:
    """By one call of the fused kernel, which gives the log-sum-exps, too."""
    query, key, value, theirs = observed.query, observed.key, observed.value, observed.output
    assert value is not None and theirs is not None
    mask = None
    if observed.rule is CAUSAL:
        mask = up_to_itself(query.size(2), key.size(2), query.dtype, query.device)
    ours, sums = _FLASH(query, key, value, 0.0, False, attn_mask=mask, scale=observed.scale)
    limit = OUTPUT_TOLERANCE.get(ours.dtype, 1e-4)
    if not float(torch.dist(ours, theirs, torch.inf)) <= limit:
        limit *= max(1.0, float(value.abs().nan_to_num().max()))
        if not torch.allclose(ours, theirs, rtol=0.0, atol=limit, equal_nan=True):
            return None
    return replace(observed, logsum=sums, unchecked=False)


def _width(observed: ObservedCall) -> int:
    return 0 if observed.value is None else observed.value.size(3)
