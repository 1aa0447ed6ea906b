"""The torch function mode of a watching thread: which calls of torch are doors."""

from __future__ import annotations

import types
from typing import Any

from torch.nn import functional
from torch.overrides import TorchFunctionMode

from clearhead.trace.watching.doors.sdpa import sdpa
from clearhead.trace.watching.doors.unfused import UnfusedDoor
from clearhead.trace.watching.doors.unfused_steps import STEPS

_SDPA = functional.scaled_dot_product_attention
_MULTI_HEAD = functional.multi_head_attention_forward


def _without_override_check(function: Any) -> types.FunctionType:
    """A copy of torch's function without its check for a mode that runs instead of it.

    A mode is off while it handles a call; calling the function itself with the mode on would never
    end. The copy runs with the mode on, so that the calls inside it are observed.
    """
    surroundings = {**function.__globals__, "has_torch_function": lambda _: False}
    copy = types.FunctionType(
        function.__code__, surroundings, function.__name__, function.__defaults__
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


_OBSERVABLE_MULTI_HEAD = _without_override_check(_MULTI_HEAD)


class AttentionMode(TorchFunctionMode):
    """Sees every call of torch's functions in this thread and lets all of them through."""

    def __init__(self) -> None:
        super().__init__()
        self.unfused = UnfusedDoor()

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """One call of a torch function."""
        kwargs = kwargs or {}
        if func is _SDPA:
            return sdpa(func, args, kwargs)
        if func is _MULTI_HEAD:
            return self._multi_head(args, kwargs)
        result = func(*args, **kwargs)
        step = STEPS.get(func)
        if step is not None:
            self.unfused.note(step, result, args, kwargs)
        return result

    def _multi_head(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """nn.MultiheadAttention: the calls inside it are the doors."""
        before, self.unfused.heads = self.unfused.heads, args[4] if len(args) > 4 else None
        try:
            with self:
                return _OBSERVABLE_MULTI_HEAD(*args, **kwargs)
        finally:
            self.unfused.heads = before
