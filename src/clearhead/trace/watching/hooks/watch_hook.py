"""A hook of a watch: it changes nothing, and a copy of its module has an idle one."""

from __future__ import annotations

import functools
from typing import Any


class WatchHook(functools.partial[Any]):
    """A function as a hook of the stack that made it.

    Whoever copies or saves a model while it is watched gets one that nobody watches: in its place
    stands a hook that does nothing.
    """

    stack: object = None  # whose hook it is

    def __reduce__(self) -> tuple[Any, ...]:
        return IdleHook, ()

    def __deepcopy__(self, memo: dict[int, Any]) -> IdleHook:
        return IdleHook()


class IdleHook:
    """What a copied module has instead."""

    idle = True  # the engine need not leave its way for it

    def __call__(self, *_: Any) -> None:
        """Do nothing."""
