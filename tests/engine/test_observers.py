"""Who is told of the engine's attention: observers of this context; whose hooks are harmless."""

from __future__ import annotations

import contextvars
from typing import Any

from torch import nn

from clearhead.engine.observers import (
    EngineObserver,
    SeenForward,
    Waiting,
    add_observer,
    observers_of,
    only_observed,
    remove_observer,
)


class Listener:
    """Watches one model; its hooks have its name."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model

    def owns(self, hook: Any) -> bool:
        return getattr(hook, "listener", None) is self

    def watches(self, model: nn.Module) -> bool:
        return model is self.model

    def wait_for(self, rows: Waiting) -> None:
        raise AssertionError

    def keep(self, forward: SeenForward) -> None:
        raise AssertionError


def test_observers_belong_to_a_context_and_to_a_model() -> None:
    model, other = nn.Linear(2, 3), nn.Linear(3, 2)
    listener = Listener(model)
    assert isinstance(listener, EngineObserver)
    add_observer(listener)
    assert observers_of(model) == (listener,) and observers_of(other) == ()
    assert contextvars.Context().run(observers_of, model) == ()
    remove_observer(listener)
    assert observers_of(model) == ()


def test_only_hooks_of_observers_are_harmless() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    listener = Listener(model)

    def own(*_: Any) -> None:
        """Changes nothing."""

    own.listener = listener  # type: ignore[attr-defined]
    assert only_observed(model)
    handles = [model[0].register_forward_hook(own), model[1].register_forward_pre_hook(own)]
    assert not only_observed(model)  # nobody here who owns them
    add_observer(listener)
    assert only_observed(model)
    handles.append(model[1].register_forward_hook(lambda *_: None))
    assert not only_observed(model)
    remove_observer(listener)
    for handle in handles:
        handle.remove()
