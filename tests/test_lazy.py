"""Names that load on first use."""

from __future__ import annotations

import sys
import types

import pytest

from clearhead.lazy import lazy


def test_a_name_is_imported_once_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("lazily")
    monkeypatch.setitem(sys.modules, "lazily", module)
    load, names = lazy("lazily", {"sqrt": "math", "path": "os.path"})
    assert "sqrt" in names() and "path" in names()
    import math
    import os.path

    assert load("sqrt") is math.sqrt
    assert vars(module)["sqrt"] is math.sqrt
    assert load("path") is os.path  # a module


def test_other_names_are_refused() -> None:
    load, _ = lazy("lazily", {})
    with pytest.raises(AttributeError, match="module 'lazily' has no attribute 'nonsense'"):
        load("nonsense")
