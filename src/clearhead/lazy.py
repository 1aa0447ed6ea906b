"""Public names that load on first use, so that ``import clearhead`` does not wait for torch.

    _HOMES = {"watch": "clearhead.trace.watching.watch", …}    # each name, and its module
    __getattr__, __dir__ = lazy(__name__, _HOMES)

A name whose home ends with the name itself (``"masks": "clearhead.attention.masks"``, with no such
name inside) is a module.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable


def lazy(
    package: str, homes: dict[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """A module's ``__getattr__`` (PEP 562), which imports a name's home, and its ``__dir__``, which
    lists the names before they are imported, so that tab completion finds them."""

    def load(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = importlib.import_module(homes[name])
        is_module = homes[name].endswith(f".{name}") and not hasattr(home, name)
        found = home if is_module else getattr(home, name)
        setattr(sys.modules[package], name, found)
        return found

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return load, names
