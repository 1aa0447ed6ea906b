"""The door at the CPU engine, whose compiled steps no hook of a module hears of.

The engine's kernels write queries, outputs and sums themselves, and its cache has keys and values
(``clearhead.engine.seen_rows``). They come in the form of calls of the attention modules, some
steps at a time. So a watched generation runs on the engine as an unwatched one does, and what is
recorded and proven are the numbers that the engine computed.
"""

from __future__ import annotations

import weakref
from typing import Any, Protocol, runtime_checkable

from torch import Tensor, nn

from clearhead.attention.call import CAUSAL
from clearhead.engine.observers import SeenCall, SeenForward, Waiting
from clearhead.trace.watching.module_stack import Frame, ModuleStack
from clearhead.trace.watching.observed_call import ObservedCall
from clearhead.trace.watching.watchers import failure, observe


@runtime_checkable
class EngineWatcher(Protocol):
    """The recorder of a watch, as this door knows it."""

    @property
    def stack(self) -> ModuleStack:
        """The modules of the watched model."""

    def begin_forward(self, path: str, ids: Tensor) -> None:
        """A forward begins that no hook hears of."""

    def keep(self, observed: ObservedCall) -> None:
        """Record one call."""

    def refuse(self, reason: str, place: Frame | None = None) -> None:
        """Note that a call ran which cannot be reproduced, and why."""


class EngineDoor:
    """The observer of the engine for one watch.

    >>> import clearhead as ch
    >>> loaded = ch.load("dates")
    >>> with ch.watch(loaded) as seen:
    ...     text = "".join(event.text for event in ch.generate(loaded, "5 May 2021"))
    >>> text, [layer.name for layer in seen.layers][:3], seen.verify().exact
    ('2021-05-05', ['E0', 'E1', 'L0'], True)
    """

    def __init__(self, watcher: EngineWatcher) -> None:
        self._known = weakref.ref(watcher)  # which has this door: no cycle should keep its records
        self._waiting: list[weakref.ref[Any]] = []
        self._models: weakref.WeakKeyDictionary[nn.Module, bool] = weakref.WeakKeyDictionary()

    @property
    def _watcher(self) -> EngineWatcher:
        watcher = self._known()
        assert watcher is not None  # it removes its door when it ends
        return watcher

    def owns(self, hook: Any) -> bool:
        """True if a hook of a module belongs to this watch."""
        return getattr(hook, "stack", None) is self._watcher.stack

    def watches(self, model: nn.Module) -> bool:
        """True if some attention of this model is watched."""
        if model not in self._models:
            known = {id(module) for module in self._watcher.stack.attention.values()}
            self._models[model] = any(id(module) in known for module in model.modules())
        return self._models[model]

    def wait_for(self, rows: Waiting) -> None:
        """Remember that rows of a runner wait."""
        self._waiting.append(weakref.ref(rows))

    def settle(self) -> None:
        """Have everything handed over that waits."""
        for waiting in [known() for known in self._waiting]:
            if waiting is not None:
                waiting.hand_over()

    def keep(self, forward: SeenForward) -> None:
        """Record the calls of some steps."""
        observe(self._keep, forward)

    def _keep(self, forward: SeenForward) -> None:
        stack, begun = self._watcher.stack, False
        paths = {id(module): path for path, module in stack.attention.items()}
        for call in forward.calls():
            path = paths.get(id(call.module))
            if path is None:
                continue  # only a part of the model is watched
            if not begun:
                self._watcher.begin_forward(path, forward.ids)
                begun = True
            stack.ran.add(path)
            place = Frame(path, call.module, True, call.cross, stack)
            try:
                self._keep_call(call, place)
            except Exception as error:  # the model goes on
                self._watcher.refuse(failure(error), place)

    def _keep_call(self, call: SeenCall, place: Frame) -> None:
        if call.query is None or call.key is None:
            self._watcher.refuse(call.reason, place)
            return
        observed = ObservedCall(
            call.query,
            call.key,
            call.value,
            scale=call.scale,
            output=call.output,
            logsum=call.logsum,
            mask=call.mask,
            rule=None if call.cross or call.mask is not None else CAUSAL,
            softcap=call.softcap,
            cross=call.cross,
            fused=True,
            places={id(self._watcher): place},
        )
        self._watcher.keep(observed)
