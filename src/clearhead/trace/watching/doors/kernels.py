"""The door at torch's own kernels: every call of them is observed, whoever makes it.

For the time of a ``watch``, a function of ours stands before some kernels in torch's dispatcher, at
the key ``BackendSelect``. That is the last station before the kernel, below autocast, autograd and
``torch.func``. So a call is seen as it is really computed: with the precision that autocast chose,
under any alias, from an exported graph, from C++. The function hands the call on unchanged and
looks at it afterwards. Python code cannot notice it, so no model leaves its fast path.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeAlias

import torch

from clearhead.trace.watching.doors.fast_path import encoder_layer, multi_head_call
from clearhead.trace.watching.doors.happened import (
    PRODUCTS,
    exponential_in_place_ran,
    exponential_ran,
    product_ran,
    softmax_ran,
    sum_and_product_ran,
)
from clearhead.trace.watching.doors.sdpa import flash_call, other_device_call
from clearhead.trace.watching.observed_call import ObservedCall
from clearhead.trace.watching.watchers import (
    Kernel,
    collected,
    failure,
    is_watching,
    notify,
    observe,
    refuse,
    unobserved,
)

_FUSED: dict[str, Callable[[dict[str, Any], Any], ObservedCall]] = {
    "_scaled_dot_product_flash_attention_for_cpu": flash_call,
}
if torch.version.cuda or torch.version.hip:
    _FUSED |= {
        "_scaled_dot_product_flash_attention": other_device_call,
        "_scaled_dot_product_efficient_attention": other_device_call,
        "_scaled_dot_product_cudnn_attention": other_device_call,
    }
_WHOLE: dict[str, Callable[[dict[str, Any], Any], None]] = {
    "_native_multi_head_attention": multi_head_call,
}  # they call other kernels
_LAYERS = ("_transformer_encoder_layer_fwd",)  # they call those
# Of these only sizes are read: they run often, and must cost next to nothing.
_SOFTMAXES: dict[str, Callable[[tuple[Any, ...], Any], None]] = {
    "_softmax": softmax_ran,
    "_log_softmax": softmax_ran,
    "exp": exponential_ran,
    "exp_": exponential_in_place_ran,
    "exp2": exponential_ran,
    "exp2_": exponential_in_place_ran,
    "pow.Scalar": exponential_ran,  # a number to the power of scores
}
_PRODUCTS: dict[str, Callable[[tuple[Any, ...], Any], None]] = {
    "bmm": product_ran,
    "baddbmm": sum_and_product_ran,
}
_Hook: TypeAlias = Callable[..., Any]
_AFTER = torch._C._dispatch_keyset_full_after(torch._C.DispatchKey.BackendSelect)


class KernelDoor:
    """The functions before the kernels; there while at least one watch is open."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open = 0
        self._library: torch.library.Library | None = None
        self._products: torch.library.Library | None = None

    def open(self) -> None:
        """Put the functions there; calls nest."""
        with self._lock:
            self._open += 1
            if self._open == 1:
                self._library = _installed(_hooks())
                PRODUCTS.begin(self._count_products)

    def close(self) -> None:
        """Take them away with the last watch."""
        with self._lock:
            self._open -= 1
            if self._open == 0 and self._library is not None:
                PRODUCTS.count(False)
                self._library._destroy()  # type: ignore[no-untyped-call]
                self._library = None

    def _count_products(self, on: bool) -> None:
        if on and self._products is None:
            self._products = _installed(_product_hooks())
        elif not on and self._products is not None:
            self._products._destroy()  # type: ignore[no-untyped-call]
            self._products = None


@functools.cache
def _hooks() -> dict[str, _Hook]:
    hooks = {name: _fused(name, describe) for name, describe in _FUSED.items()}
    hooks |= {name: _whole(name, observer) for name, observer in _WHOLE.items()}
    hooks |= {name: _layer(name) for name in _LAYERS}
    return hooks | {name: _counted(name, count) for name, count in _SOFTMAXES.items()}


@functools.cache
def _product_hooks() -> dict[str, _Hook]:
    return {name: _counted(name, count) for name, count in _PRODUCTS.items()}


def _installed(hooks: dict[str, _Hook]) -> torch.library.Library:
    library = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
    for name, hook in hooks.items():
        library.impl(name, hook, "BackendSelect", with_keyset=True)  # type: ignore[no-untyped-call]
    return library


def _fused(name: str, describe: Callable[[dict[str, Any], Any], ObservedCall]) -> _Hook:
    """Describing a call computes nothing; what watchers make of it does."""
    redispatch, names = _operation(name)

    def run(keyset: Any, *args: Any, **kwargs: Any) -> Any:
        result = redispatch(keyset & _AFTER, *args, **kwargs)
        if is_watching() and type(args[0]) is torch.Tensor and not args[0].is_meta:
            kernel, calls = Kernel(describe, names, args, kwargs, result), collected()
            if calls is not None:
                calls.kernels.append(kernel)
                return result
            try:
                observe(notify, kernel.observed())
            except Exception as error:  # the model goes on
                refuse(failure(error))
        return result

    return run


def _whole(name: str, observer: Callable[[dict[str, Any], Any], None]) -> _Hook:
    redispatch, names = _operation(name)

    def run(keyset: Any, *args: Any, **kwargs: Any) -> Any:
        with unobserved():
            result = redispatch(keyset & _AFTER, *args, **kwargs)
        if is_watching() and _is_plain(args[0]):
            observe(observer, {**dict(zip(names, args, strict=False)), **kwargs}, result)
        return result

    return run


def _layer(name: str) -> _Hook:
    redispatch, _ = _operation(name)

    def run(keyset: Any, *args: Any, **kwargs: Any) -> Any:
        with encoder_layer() as layer:
            result = redispatch(keyset & _AFTER, *args, **kwargs)
        if is_watching() and _is_plain(args[0]) and not layer.attended:
            refuse("torch's fast path ran attention that is not seen")
        return result

    return run


def _counted(name: str, count: Callable[[tuple[Any, ...], Any], None]) -> _Hook:
    redispatch, _ = _operation(name)

    def run(keyset: Any, *args: Any, **kwargs: Any) -> Any:
        result = redispatch(keyset & _AFTER, *args, **kwargs)
        if is_watching() and _is_plain(result):
            try:
                count(args, result)
            except Exception as error:  # the model goes on
                refuse(f"counting it failed: {type(error).__name__}")
        return result

    return run


def _operation(name: str) -> tuple[Callable[..., Any], list[str]]:
    """How to hand a call of an operation on, and the names of its arguments."""
    packet, _, overload = name.partition(".")
    operation = getattr(getattr(torch.ops.aten, packet), overload or "default")
    names = [argument.name for argument in operation._schema.arguments]
    return operation._handle.redispatch_boxed, names


def _is_plain(given: Any) -> bool:
    return type(given) is torch.Tensor and not given.is_meta


KERNELS = KernelDoor()
