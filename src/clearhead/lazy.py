"""Public names that load on first use, so that ``import clearhead`` does not wait for torch."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable


def lazy(package: str, homes: dict[str, str]) -> Callable[[str], object]:
    """A module's ``__getattr__`` (PEP 562): each public name with the module it lives in."""

    def load(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(importlib.import_module(homes[name]), name)
        setattr(sys.modules[package], name, found)
        return found

    return load
