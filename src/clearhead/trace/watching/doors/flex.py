"""What ``flex_attention`` computed, where it is not compiled.

Its scores are changed and hidden by functions of the model. They are asked once more, as torch asks
them: for the scores themselves, and for scores of zero. If the first are the plain scores with the
second added, that is a bias; otherwise the weights are kept as they are.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from clearhead.trace.watching.observed_call import ObservedCall
from clearhead.trace.watching.sample_check import MOST_SPELLED, spelled_out
from clearhead.trace.watching.watchers import notify, refuse

ADDITIVE = 1e-5  # what rounding may make of a sum, for scores of 1


def is_flex(operation: Any) -> bool:
    """True for the operation behind torch's flex_attention."""
    return str(operation) == "flex_attention"


def flex_call(args: tuple[Any, ...], result: Any) -> None:
    """Notify the watchers of a call."""
    observed = _observed(args, result)
    if isinstance(observed, str):
        refuse(observed)
    else:
        notify(observed)


def _observed(args: tuple[Any, ...], result: Any) -> ObservedCall | str:
    query, key, value = args[:3]
    count = query.shape[0] * query.shape[1] * query.shape[2] * key.shape[2]
    scored = getattr(sys.modules.get("torch._higher_order_ops.flex_attention"), _INNER, None)
    if scored is None:
        return "this version of torch does not tell what flex_attention computes"
    if count > MOST_SPELLED:
        return f"its {count:,} weights, made by functions of its own, are too many to compute"
    key, value = (_for_every_head(part, query) for part in (key, value))
    plain, changed = scored(query, key, value, *args[3:])
    _, added = scored(torch.zeros_like(query), key, value, *args[3:])
    known = ObservedCall(
        query,
        key,
        value,
        scale=float(args[5]),
        output=result[0],
        mask=~changed.isneginf(),
        bias=added.nan_to_num(0.0, neginf=0.0),
        fused=True,
    )
    off = (plain + added - changed).nan_to_num(0.0, 0.0, 0.0).abs()
    if bool((off <= ADDITIVE * plain.abs().clamp(min=1.0)).all()):
        return known
    return spelled_out(replace(known, weights=torch.softmax(changed, dim=-1)))


_INNER = "_math_attention_inner"


def _for_every_head(part: Tensor, query: Tensor) -> Tensor:
    part = part.expand(query.shape[0], -1, -1, -1)
    return part.repeat_interleave(query.shape[1] // part.shape[1], dim=1)
