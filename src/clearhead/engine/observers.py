"""Observers of the engine's attention in this context: none, unless somebody watches.

The kernels write queries, outputs and sums of every step into memory of the runner
(``seen_rows.py``). After some steps the observers get them, layer by layer, as if one forward had
computed them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn


@dataclass(frozen=True)
class SeenCall:
    """What one attention of the engine computed, for the tokens of some steps.

    ``mask`` is True where a query may attend; without one, self-attention is causal and aligned to
    the last key, and cross-attention sees every key. A ``reason`` says why the call cannot be
    described: then there are no numbers.
    """

    module: nn.Module
    cross: bool = False
    query: Float[Tensor, "batch head query key_dim"] | None = None
    key: Float[Tensor, "batch kv_head key key_dim"] | None = None
    value: Float[Tensor, "batch kv_head key value_dim"] | None = None
    output: Float[Tensor, "batch head query value_dim"] | None = None
    logsum: Float[Tensor, "batch head query"] | None = None
    mask: Bool[Tensor, "batch 1 query key"] | None = None
    scale: float = 1.0
    softcap: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class SeenForward:
    """The tokens of some steps, padded with 0, and the calls of every attention in order."""

    ids: Int[Tensor, "batch query"]
    calls: Callable[[], Iterator[SeenCall]]


@runtime_checkable
class Waiting(Protocol):
    """Rows that are not handed over yet."""

    def hand_over(self) -> None:
        """Give them to the observers now."""


@runtime_checkable
class EngineObserver(Protocol):
    """Receives what the engine computed."""

    def owns(self, hook: Any) -> bool:
        """True if a hook of a module is its own, and changes nothing."""

    def watches(self, model: nn.Module) -> bool:
        """True if it wants the attention of this model."""

    def wait_for(self, rows: Waiting) -> None:
        """Rows wait: whoever wants to see them now, or ends, has them handed over."""

    def keep(self, forward: SeenForward) -> None:
        """Take the rows of some steps."""


_OBSERVERS: ContextVar[tuple[EngineObserver, ...]] = ContextVar("engine_observers", default=())


def add_observer(observer: EngineObserver) -> None:
    """Notify one more in this context."""
    _OBSERVERS.set((*_OBSERVERS.get(), observer))


def remove_observer(observer: EngineObserver) -> None:
    """Notify all but this one from now on."""
    _OBSERVERS.set(tuple(other for other in _OBSERVERS.get() if other is not observer))


def observers_of(model: nn.Module) -> tuple[EngineObserver, ...]:
    """The observers in this context that want the attention of a model."""
    return tuple(observer for observer in _OBSERVERS.get() if observer.watches(model))


def only_observed(model: nn.Module) -> bool:
    """True if every hook of a model belongs to an observer that the engine can tell, or is idle."""
    observers = observers_of(model)
    return all(
        getattr(hook, "idle", False) or any(observer.owns(hook) for observer in observers)
        for module in model.modules()
        for hooks in (module._forward_hooks, module._forward_pre_hooks)
        for hook in hooks.values()
    )
