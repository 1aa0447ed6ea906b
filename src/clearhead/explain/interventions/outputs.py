"""Outputs of heads and layers: the one way to read and to change them while a model runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

EVERYTHING = (slice(None),)  # all columns of an output


@dataclass(frozen=True, eq=False)
class Outputs:
    """The outputs of all heads side by side, as W_O reads them; or what a module returns."""

    module: nn.Module  # W_O, or the layer itself
    joined: bool  # True: heads, in the input of the module

    @contextmanager
    def read_by(self, keep: Callable[[Tensor], None]) -> Iterator[None]:
        """Call ``keep`` with the outputs of each forward in the block."""

        def before(_module: nn.Module, args: tuple[Tensor, ...]) -> None:
            keep(args[0].detach())

        def behind(_module: nn.Module, _args: Any, output: Tensor) -> None:
            keep(output.detach())

        with _hooked(self._register(before, behind)):
            yield

    @contextmanager
    def changed_by(self, change: Callable[[Tensor], None]) -> Iterator[None]:
        """Let ``change`` alter a copy of the outputs, which the model uses instead."""

        def before(_module: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            copy = args[0].clone()
            change(copy)
            return (copy, *args[1:])

        def behind(_module: nn.Module, _args: Any, output: Tensor) -> Tensor:
            copy = output.clone()
            change(copy)
            return copy

        with _hooked(self._register(before, behind)):
            yield

    @contextmanager
    def replaced(
        self, columns: Sequence[slice], instead: Float[Tensor, " width"] | None
    ) -> Iterator[None]:
        """Put a vector (zeros: None) in the place of some columns, at every position."""

        def replace(outputs: Tensor) -> None:
            for column in columns:
                outputs[..., column] = 0.0 if instead is None else instead[column]

        with self.changed_by(replace):
            yield

    def _register(self, before: Callable[..., Any], behind: Callable[..., Any]) -> RemovableHandle:
        if self.joined:
            return self.module.register_forward_pre_hook(before)
        return self.module.register_forward_hook(behind)


@contextmanager
def _hooked(handle: RemovableHandle) -> Iterator[None]:
    try:
        yield
    finally:
        handle.remove()
