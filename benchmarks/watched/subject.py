"""One line of the table: a model to watch, and how to call it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn


@dataclass(frozen=True)
class Made:
    """A model that is ready to run."""

    model: nn.Module
    run: Callable[[], Any]
    own: Callable[[], Any] | None = None  # gives the weights that the package itself reports
    weights: Callable[[], list[Tensor]] | None = None  # where operations cannot be read


@dataclass(frozen=True)
class Subject:
    """A family of a package with one of its attention implementations."""

    package: str
    family: str
    implementation: str
    make: Callable[[], Made]

    def __str__(self) -> str:
        return f"{self.package} {self.family} {self.implementation}"


def called(model: nn.Module, *arguments: Any, **named: Any) -> Made:
    """A model that is called with these arguments."""
    model.eval()
    return Made(model, lambda: model(*arguments, **named))
