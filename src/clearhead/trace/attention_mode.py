"""The torch function mode of a watching thread: which calls of torch are doors."""

from __future__ import annotations

import types
from typing import Any

from torch.nn import functional
from torch.overrides import TorchFunctionMode

from clearhead.trace.plain_door import PlainDoor
from clearhead.trace.plain_steps import STEPS
from clearhead.trace.sdpa_door import sdpa

_SDPA = functional.scaled_dot_product_attention
_MULTI_HEAD = functional.multi_head_attention_forward


def _opened(function: Any) -> types.FunctionType:
    """torch's own function, without its question whether a mode wants to run instead of it.

    A mode is switched off while it answers a call, and asking again would never end. This copy of
    the function runs with the mode on, so that the calls inside are seen.
    """
    surroundings = {**function.__globals__, "has_torch_function": lambda _: False}
    copy = types.FunctionType(
        function.__code__, surroundings, function.__name__, function.__defaults__
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


_OPENED_MULTI_HEAD = _opened(_MULTI_HEAD)


class AttentionMode(TorchFunctionMode):
    """Sees every call of torch's functions in this thread and lets all of them through."""

    def __init__(self) -> None:
        super().__init__()
        self.plain = PlainDoor()

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
            self.plain.note(step, result, args, kwargs)
        return result

    def _multi_head(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """nn.MultiheadAttention: the calls inside it are the doors."""
        before, self.plain.heads = self.plain.heads, args[4] if len(args) > 4 else None
        try:
            with self:
                return _OPENED_MULTI_HEAD(*args, **kwargs)
        finally:
            self.plain.heads = before
