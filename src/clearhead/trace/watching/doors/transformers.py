"""The door at the attention interface of ``transformers``.

During a ``watch``, ``AttentionInterface.get_interface`` returns the model's own function in a
wrapper that notifies the watchers of this thread. Other threads get the function as it is.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from clearhead.errors import InputError
from clearhead.trace.watching.observed_call import ACTIVE, ObservedCall
from clearhead.trace.watching.sample_check import matches_model

_LOCK = threading.Lock()
_open = 0
_original: Callable[..., Any] | None = None


def open_door() -> None:
    """Install the wrapper if transformers is imported; calls nest."""
    global _open, _original
    with _LOCK:
        interface = _interface()
        if interface is None:
            return
        if _open == 0:
            _original = interface.get_interface
            interface.get_interface = _watched(_original)
        _open += 1


def close_door() -> None:
    """Remove the wrapper when the last watch has ended."""
    global _open, _original
    with _LOCK:
        interface = _interface()
        if interface is None or _open == 0:
            return
        _open -= 1
        if _open == 0:
            interface.get_interface = _original
            _original = None


def _interface() -> Any:
    """The class that every model asks for its attention function; None without transformers."""
    modeling = sys.modules.get("transformers.modeling_utils")
    return getattr(modeling, "AttentionInterface", None)


def refuse_kernel(name: str | None) -> None:
    """Raise for attention kernels that cannot be observed."""
    if name is not None and any(kind in name for kind in ("flash", "flex", "paged")):
        raise InputError(
            f"this model computes attention with {name!r}, which watch cannot see into.",
            hint="load it with attn_implementation='sdpa' (as fast on a CPU) or 'eager'.",
        )


def _watched(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def get_interface(self: Any, attn_implementation: str, default: Any) -> Callable[..., Any]:
        function = original(self, attn_implementation, default)
        if not ACTIVE.watchers:
            return function  # type: ignore[no-any-return]
        refuse_kernel(attn_implementation)
        return functools.partial(_observed, function)

    return get_interface


def _observed(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call the model's function as it is, then notify the watchers of what it computed."""
    outer, ACTIVE.collected = ACTIVE.collected, []
    ACTIVE.enter_mode()
    try:
        result = function(*args, **kwargs)
        inner = ACTIVE.collected
    finally:
        ACTIVE.leave_mode()
        ACTIVE.collected = outer
    with torch.no_grad(), torch._C.DisableTorchFunction():
        observed = _merged(inner, result, *args, **kwargs)
    if observed is None:
        ACTIVE.refuse("it computes attention in a way of its own")
    else:
        ACTIVE.notify(observed)
    return result


def _merged(
    inner: list[ObservedCall],
    result: Any,
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None = None,
    *,
    scaling: float | None = None,
    dropout: float = 0.0,
    position_bias: Tensor | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **_: Any,
) -> ObservedCall | None:
    """The arguments of the interface, completed by what the kernel inside reported."""
    fused = inner[0] if len(inner) == 1 and inner[0].fused else None
    if fused is not None:
        if key.shape[1] < fused.key.shape[1] and key.shape[2] >= fused.key.shape[2]:
            keys = fused.key.shape[2]  # repeated for every query head, or cut to what is filled
            fused.key, fused.value = key[:, :, :keys], value[:, :, :keys]
        if position_bias is not None and not fused.from_start and attention_mask is not None:
            keys = fused.key.shape[2]
            fused.mask, fused.bias = attention_mask[..., :keys], position_bias[..., :keys]
        return fused
    weights = result[1] if isinstance(result, tuple) and len(result) > 1 else None
    if isinstance(weights, Tensor) and query.ndim == key.ndim == 4:
        known = ObservedCall(
            query,
            key,
            value,
            scale=query.shape[-1] ** -0.5 if scaling is None else float(scaling),
            output=result[0].transpose(1, 2),
            mask=None if attention_mask is None else attention_mask[..., : key.shape[2]],
            bias=position_bias,
            softcap=softcap,
            sinks=None if s_aux is None else s_aux.detach().flatten(),
            dropout=dropout if module.training else 0.0,
            weights=weights,
            after_dropout=True,
        )
        if matches_model(known):
            return known
    return inner[0] if len(inner) == 1 else None
