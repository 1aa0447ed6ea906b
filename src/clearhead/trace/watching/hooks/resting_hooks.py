"""Hooks that rest: of modules that say themselves when they attend.

A hook costs time in every call of its module, and a generation calls each module for every token.
A module that goes through the attention interface of transformers passes itself to it. So once a
step of it was understood (``waiting/``), the door at the interface is enough: it runs the hooks in
their place where a call may be anything but one more such step. That holds in threads and tasks,
too, to which the watch does not belong.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from torch import nn
from torch.utils.hooks import RemovableHandle

SOURCES = frozenset(("key_value_states", "encoder_hidden_states", "context", "memory"))
_RESTING: dict[int, list[Resting]] = {}  # by module, of all watches


class Resting:
    """The hooks of one module that rest, in one watch."""

    def __init__(
        self,
        module: nn.Module,
        enter: Callable[..., None],
        leave: Callable[..., None],
        handles: Sequence[RemovableHandle],
    ) -> None:
        self.module, self.enter, self.leave = module, enter, leave
        self.handles = handles


class RestingHooks:
    """The hooks of one watch that rest."""

    def __init__(self) -> None:
        self._known: list[Resting] = []

    def add(self, hooks: Resting) -> None:
        """From now on the door runs these hooks."""
        for handle in hooks.handles:
            handle.remove()
        self._known.append(hooks)
        _RESTING.setdefault(id(hooks.module), []).append(hooks)

    def forget(self) -> None:
        """The watch ends."""
        for hooks in self._known:
            others = [one for one in _RESTING.get(id(hooks.module), []) if one is not hooks]
            if others:
                _RESTING[id(hooks.module)] = others
            else:
                _RESTING.pop(id(hooks.module), None)
        self._known.clear()


class entered:  # noqa: N801 - a context manager
    """The hooks of a module that rest, run around a call of its attention function."""

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._hooks = _RESTING.get(id(args[0]), ()) if args else ()
        self._args, self._kwargs = args, kwargs

    def __enter__(self) -> None:
        for hooks in self._hooks:
            hooks.enter(hooks.module, self._args[1:], self._kwargs)

    def __exit__(self, *_: object) -> None:
        for hooks in reversed(self._hooks):
            hooks.leave(hooks.module, self._args[1:], None)


@functools.cache
def may_get_sources(kind: Any) -> bool:
    """True if a call of such a module may pass another sequence to attend to: its hook says so."""
    try:
        return not SOURCES.isdisjoint(inspect.signature(kind.forward).parameters)
    except (TypeError, ValueError):
        return True
