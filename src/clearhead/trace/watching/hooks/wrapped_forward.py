"""A function around a module's ``forward``, where a hook would change what the model computes."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from torch import nn


class WrappedForward:
    """In place of a module's ``forward``, where a hook would change what the model computes."""

    def __init__(self, module: nn.Module, enter: Callable[..., None], leave: Callable[..., None]):
        self._module, self._enter, self._leave = module, enter, leave
        self._forward = module.forward
        self._before = module.__dict__.get("forward")  # somebody else's, such as accelerate's
        module.__dict__["forward"] = self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the module as it is."""
        self._enter(self._module, args, kwargs)
        try:
            return self._forward(*args, **kwargs)
        finally:
            self._leave(self._module, args, None)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """A copy of the module is not watched."""
        return types.MethodType(type(self._module).forward, memo[id(self._module)])

    def remove(self) -> None:
        """Leave the module as it was."""
        if self._module.__dict__.get("forward") is self:
            del self._module.__dict__["forward"]
            if self._before is not None:
                self._module.__dict__["forward"] = self._before
