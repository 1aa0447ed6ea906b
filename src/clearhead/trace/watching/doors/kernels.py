"""The door at torch's own kernels: every call of them is observed, whoever makes it.

For the time of a ``watch``, a function of ours stands before some kernels in torch's dispatcher, at
the key ``BackendSelect``. That is the last station before the kernel, below autocast, autograd and
``torch.func``. So a call is seen as it is really computed: with the precision that autocast chose,
under any alias, from an exported graph, from C++. The function hands the call on unchanged and
looks at it afterwards. Python code cannot notice it, so no model leaves its fast path.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch

from clearhead.trace.watching.doors.fast_path import encoder_layer_call, multi_head_call
from clearhead.trace.watching.doors.happened import (
    exponential_ran,
    product_ran,
    softmax_ran,
    sum_and_product_ran,
)
from clearhead.trace.watching.doors.sdpa import flash_call, other_device_call
from clearhead.trace.watching.watchers import is_watching, observe, refuse, unobserved

_KERNELS: dict[str, Callable[..., None]] = {
    "_scaled_dot_product_flash_attention_for_cpu": flash_call,
    "_scaled_dot_product_flash_attention": other_device_call,
    "_scaled_dot_product_efficient_attention": other_device_call,
    "_scaled_dot_product_cudnn_attention": other_device_call,
    "_native_multi_head_attention": multi_head_call,
    "_transformer_encoder_layer_fwd": encoder_layer_call,
}
_COUNTED: dict[str, Callable[[tuple[Any, ...], Any], None]] = {
    "bmm": product_ran,
    "baddbmm": sum_and_product_ran,
    "_softmax": softmax_ran,
    "_log_softmax": softmax_ran,
    "exp": exponential_ran,
}  # of these only sizes are read: they run often, and must cost next to nothing
_WHOLE = ("_native_multi_head_attention", "_transformer_encoder_layer_fwd")  # call other kernels
_AFTER = torch._C._dispatch_keyset_full_after(torch._C.DispatchKey.BackendSelect)


class KernelDoor:
    """The functions before the kernels; there while at least one watch is open."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open = 0
        self._library: torch.library.Library | None = None

    def open(self) -> None:
        """Put the functions there; calls nest."""
        with self._lock:
            self._open += 1
            if self._open == 1:
                self._library = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
                hooks = {name: _before(name, observer) for name, observer in _KERNELS.items()}
                hooks |= {name: _counted(name, count) for name, count in _COUNTED.items()}
                for name, hook in hooks.items():
                    self._library.impl(  # type: ignore[no-untyped-call]
                        name, hook, "BackendSelect", with_keyset=True
                    )

    def close(self) -> None:
        """Take them away with the last watch."""
        with self._lock:
            self._open -= 1
            if self._open == 0 and self._library is not None:
                self._library._destroy()  # type: ignore[no-untyped-call]
                self._library = None


def _before(name: str, observer: Callable[..., None]) -> Callable[..., Any]:
    operation = getattr(torch.ops.aten, name).default
    names = [argument.name for argument in operation._schema.arguments]

    whole = name in _WHOLE

    def run(keyset: Any, *args: Any, **kwargs: Any) -> Any:
        if whole:
            with unobserved():
                result = operation.redispatch(keyset & _AFTER, *args, **kwargs)
        else:
            result = operation.redispatch(keyset & _AFTER, *args, **kwargs)
        if is_watching() and type(args[0]) is torch.Tensor and args[0].device.type != "meta":
            observe(observer, {**dict(zip(names, args, strict=False)), **kwargs}, result)
        return result

    return run


def _counted(name: str, count: Callable[[tuple[Any, ...], Any], None]) -> Callable[..., Any]:
    redispatch = getattr(torch.ops.aten, name).default._handle.redispatch_boxed

    def run(keyset: Any, *args: Any, **kwargs: Any) -> Any:
        result = redispatch(keyset & _AFTER, *args, **kwargs)
        if is_watching() and type(args[0]) is torch.Tensor and args[0].device.type != "meta":
            try:
                count(args, result)
            except Exception as error:  # the model goes on
                refuse(f"counting it failed: {type(error).__name__}")
        return result

    return run


KERNELS = KernelDoor()
