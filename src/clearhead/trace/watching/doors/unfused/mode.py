"""The dispatch mode that hears of every operation of a module that may attend by itself."""

from __future__ import annotations

import functools
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.utils._python_dispatch import TorchDispatchMode

from clearhead.trace.watching.doors.flex import flex_call, is_flex
from clearhead.trace.watching.doors.unfused.operands import opaque
from clearhead.trace.watching.doors.unfused.pending_calls import PendingCalls
from clearhead.trace.watching.doors.unfused.steps import MOVES, STEPS
from clearhead.trace.watching.doors.unfused.trail import Pending, Step, Trail, version
from clearhead.trace.watching.watchers import explain, failure, is_watching, observe


@functools.cache
def _is_composite(func: Any) -> bool:
    """True for an operation that torch makes of others."""
    composite = "CompositeImplicitAutograd"
    return torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), composite)


_COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd


@functools.cache
def _is_cast(func: Any, device: str) -> bool:
    """True for an operation that autocast handles itself: what it is made of is then left alone."""
    key = f"Autocast{device.upper()}"
    known = torch._C._parse_dispatch_key(key) is not None
    return known and torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), key)


@functools.cache
def _notes_views(func: Any) -> bool:
    """True for an operation of which torch notes that its results are views."""
    return torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "ADInplaceOrView")


def _noting_views(func: Any) -> Any:
    """What an operation is made of must not note again what it notes itself."""
    if not _notes_views(func):
        return nullcontext()
    return torch._C._SetExcludeDispatchKeyGuard(torch._C.DispatchKey.ADInplaceOrView, True)


def _device(args: tuple[Any, ...]) -> str:
    parts = [part for arg in args for part in (arg if isinstance(arg, list | tuple) else [arg])]
    return next((part.device.type for part in parts if isinstance(part, Tensor)), "cpu")


# Tangents of zero have no memory. A mode leaves out the station that knows of them, and a kernel
# that reads one ends the process.
_ZERO_TENSOR = torch._C.DispatchKey.ZeroTensor
_ZEROS = torch.ops.aten._efficientzerotensor.default
# Their kernels call operations that autocast casts. A mode runs below autocast, and so would those.
_CASTING = (
    torch.ops.aten._transformer_encoder_layer_fwd.default,
    torch.ops.aten._trilinear.default,
    torch.ops.aten.linalg_pinv.atol_rtol_tensor,
)


def _autocast_of_caller(device: str) -> Any:
    """Autocast counts if it does where the model called the operation that is running."""
    if not torch.amp.is_autocast_available(device):
        return nullcontext()
    with torch._C._RestorePythonTLSSnapshot():  # type: ignore[attr-defined]
        counts = torch.is_autocast_enabled(device)
    key = torch._C._parse_dispatch_key(f"Autocast{device.upper()}")
    return nullcontext() if key is None else torch._C._SetExcludeDispatchKeyGuard(key, not counts)


class UnfusedMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Follows the tensors of one running module from query · key to weights · value."""

    supports_higher_order_operators = True

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Compiled functions run as compiled, and torch's compiler does not see this mode."""
        return True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._trails: dict[Any, Trail | Pending] = {}
        self.calls = PendingCalls()
        self.paused = 0  # doors that describe what runs now better
        self.noise: dict[int, float] = {}  # dropout masks: address and share that is kept
        self.sums: dict[int, Any] = {}  # addresses of row sums, and of what was summed
        self.outer: list[Any] = []  # memory of every query times every key, not summed yet
        self.hand_products: set[int] = set()  # sizes of such that were summed
        self.writes = False  # the operation that runs now writes to its first argument
        self._has_zeros = forward_ad._current_level >= 0  # tangents of zero may be there

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run every operation as it is; look at the result if it is a known step."""
        kwargs = kwargs or {}
        if not isinstance(func, torch._ops.OpOverload):
            return self._higher_order(func, args, kwargs)
        if torch.is_inference_mode_enabled() and _is_composite(func):
            # Elsewhere torch itself takes these apart before they come here. That runs in the state
            # of the caller: autocast counts, unless it has cast the operation as a whole, and views
            # of parameters keep their requires_grad.
            cast = torch._C._DisableAutocast() if _is_cast(func, _device(args)) else nullcontext()
            with torch._C._RestorePythonTLSSnapshot(), cast, _noting_views(func), self:  # type: ignore[attr-defined]
                return func._op_dk(_COMPOSITE, *args, **kwargs)
        self._has_zeros = self._has_zeros or func is _ZEROS
        if func in _CASTING:
            with _autocast_of_caller(_device(args)):
                result = self._run(func, args, kwargs)
        else:
            result = self._run(func, args, kwargs)
        if not self.paused and is_watching():
            observe(self._note, func, result, args, kwargs)
        return result

    def _run(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        if not self._has_zeros:
            return func(*args, **kwargs)
        with torch._C._SetExcludeDispatchKeyGuard(_ZERO_TENSOR, False):
            return func(*args, **kwargs)

    def _higher_order(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """Operations that take functions, such as flex_attention, run as they are."""
        result = func(*args, **kwargs)
        if is_watching() and is_flex(func):
            observe(flex_call, args, result)
        return result

    def trail(self, tensor: Any) -> Trail | None:
        """How a tensor came about, if it is on a trail."""
        found = self.entry(tensor)
        return found if isinstance(found, Trail) else None

    def entry(self, tensor: Any) -> Trail | Pending | None:
        """The trail of a tensor, or the call whose output it is."""
        if not isinstance(tensor, Tensor) or not self._trails:
            return None
        found = self._trails.get(_name(tensor))
        if isinstance(found, Trail) and found.version is not None:
            return found if version(tensor) in (None, found.version) else None
        return found

    def _note(self, func: Any, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        first = result[0] if isinstance(result, tuple) and result else result
        if not isinstance(first, Tensor) or not args:
            return
        step = STEPS.get(func.overloadpacket, opaque)
        self.writes = func._schema.is_mutable
        self._forget_freed(first, args)
        before = self.entry(args[0])
        if isinstance(before, Pending) and step not in MOVES and first.shape == args[0].shape:
            found: Trail | Pending | None = before  # whatever becomes of the output
        else:
            found = self._taken(step, first, args, kwargs)
        name = _name(first)
        if found is None:
            self._trails.pop(name, None)
            return
        if isinstance(found, Trail):
            written = self.writes and not first.is_inference()  # counted after this
            found = replace(
                found, version=None if version(first) is None else first._version + written
            )
        self._trails[name] = found

    def _taken(
        self, step: Step, result: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Trail | Pending | None:
        """What a step makes of a trail; a step that fails loses it."""
        try:
            return step(self, result, args, kwargs)
        except Exception as error:
            explain(failure(error))
            return None

    def _forget_freed(self, result: Tensor, args: tuple[Any, ...]) -> None:
        """A new tensor at a known address: what stood there is gone."""
        address = result.data_ptr()
        if address in self.noise or address in self.sums:
            given = [part.data_ptr() for part in args if isinstance(part, Tensor)]
            if address not in given:
                self.noise.pop(address, None)
                self.sums.pop(address, None)


def _name(tensor: Tensor) -> Any:
    """Autograd makes new objects for the same tensor: its place in memory is what stays."""
    return (tensor.data_ptr(), tuple(tensor.shape), tensor.stride())
