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
from clearhead.trace.watching.doors.passing_by import pass_by_hooks
from clearhead.trace.watching.doors.unfused.following import follow_steps, is_followed, steps_paused
from clearhead.trace.watching.doors.unfused.scored_call import narrowest
from clearhead.trace.watching.hooks.resting_hooks import entered
from clearhead.trace.watching.observed_call import ObservedCall
from clearhead.trace.watching.sample_check import checked
from clearhead.trace.watching.watchers import (
    ALONE,
    Calls,
    collecting,
    happened,
    is_watching,
    notify,
    observe,
    refuse,
    unread_by,
)

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
        return functools.partial(_observed, original(self, attn_implementation, default))

    return get_interface


def _observed(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call the model's function as it is, then notify the watchers of what it computed."""
    watcher, way = unread_by(function, args, kwargs)
    if watcher is None:
        with entered(args, kwargs):  # in a context to which no watch belongs, they say that
            return (_described if is_watching() else _plain)(function, args, kwargs)
    if way == ALONE:
        pass_by_hooks(True)
        try:
            result = function(*args, **kwargs)
        finally:
            pass_by_hooks(False)
        watcher.put_alone(result, args, kwargs)
        return result
    with collecting() as calls:
        result = function(*args, **kwargs)
    watcher.put(calls, result, args, kwargs, function)
    return result


def _plain(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return function(*args, **kwargs)


def _described(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if is_followed() or _takes_steps(args, kwargs):
        calls, result = _followed(function, args, kwargs)
    else:
        with collecting() as calls:
            result = function(*args, **kwargs)
    observe(_notify, calls, result, args, kwargs)
    return result


def _followed(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Calls, Any]:
    with collecting() as calls, steps_paused():
        end = follow_steps() if _takes_steps(args, kwargs) else None
        try:
            result = function(*args, **kwargs)
        finally:
            if end is not None:
                end()
    return calls, result


def _takes_steps(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """True if no fused kernel takes the call, as far as the arguments tell: it has dropout, or
    values of another width than the keys."""
    if len(args) < 4 or not isinstance(args[1], Tensor) or not isinstance(args[3], Tensor):
        return False
    dropout = bool(kwargs.get("dropout")) and getattr(args[0], "training", False)
    return dropout or args[1].size(-1) != args[3].size(-1)


def _notify(calls: Calls, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    for _ in range(calls.softmaxes):
        happened()
    observed = described(calls, result, args, kwargs)
    if isinstance(observed, str):
        refuse(observed)
    else:
        notify(observed)


def described(
    calls: Calls, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> ObservedCall | str:
    """The call, by the kernel that ran in it, or by arguments and weights; or why not."""
    found = calls.observed()
    if len(found) == 1 and len(args) > 3:
        mask = args[4] if len(args) > 4 else kwargs.get("attention_mask")
        return _completed(found[0], args[2], args[3], mask)
    return _merged(result, *args, **kwargs)


def _merged(
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
) -> ObservedCall | str:
    """The arguments of the interface, and the weights that it returned."""
    weights = result[1] if isinstance(result, tuple) and len(result) > 1 else None
    if not isinstance(weights, Tensor) or not query.ndim == key.ndim == weights.ndim == 4:
        return OWN_WAY
    keys = min(key.shape[2], weights.shape[3])
    if key.shape[2] != keys:
        key, value = key[:, :, :keys], value[:, :, :keys]
    known = ObservedCall(
        query,
        key,
        value,
        scale=query.shape[-1] ** -0.5 if scaling is None else float(scaling),
        output=result[0].transpose(1, 2),
        dtype=narrowest(query, key, value, weights, result[0]),
        mask=None if attention_mask is None else _mask(attention_mask, keys),
        bias=None if position_bias is None else position_bias[..., :keys],
        softcap=softcap,
        sinks=None if s_aux is None else s_aux.detach().flatten(),
        dropout=dropout if module.training else 0.0,
        weights=weights,
        after_dropout=True,
        unchecked=True,
    )
    return known if query.shape[2] == 1 else checked(known)  # steps may be compared together


OWN_WAY = "it computes attention in a way of its own"


def _completed(
    found: ObservedCall, key: Tensor, value: Tensor, mask: Tensor | None
) -> ObservedCall:
    """What the kernel got may be copies: keys repeated for every query head, a mask as numbers."""
    keys = found.key.shape[2]
    if found.fused and key.shape[1] < found.key.shape[1] and key.shape[2] >= keys:
        group = found.key.shape[1] // key.shape[1]
        last = (found.key[:, ::group, -1], key[:, :, keys - 1].to(found.key.dtype))
        if torch.equal(*last):
            dtype = found.key.dtype
            found.key = key[:, :, :keys].to(dtype)
            if found.value is not None:
                found.value = value[:, :, :keys].to(dtype)
    if mask is not None and found.mask is not None and mask.dtype == torch.bool:
        mine = _mask(mask, keys)
        if mine.shape == found.mask.shape and torch.equal(mine, found.mask == 0):
            found.mask = mine  # the same object in every layer
    return found


def _mask(mask: Tensor, keys: int) -> Tensor:
    """The mask as it was passed (its rules are known then), or without keys that are not there."""
    return mask if mask.shape[-1] == keys else mask[..., :keys]
