"""A kernel on first use, or None."""

from __future__ import annotations

import sys

import pytest
from numba.core.errors import TypingError

from clearhead.kernels import loading
from clearhead.kernels.loading import load_kernel
from clearhead.kernels.threads import TorchThreads, torch_threads


def test_it_is_compiled_for_torchs_threads() -> None:
    assert load_kernel(lambda threads: threads) is torch_threads()


def test_none_without_openmp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "torch_threads", lambda: None)
    assert load_kernel(lambda _: pytest.fail("must not be compiled")) is None


def test_none_without_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)

    def compile_it(_: TorchThreads) -> int:
        from numba import types

        return int(types.int64.bitwidth)

    assert load_kernel(compile_it) is None


@pytest.mark.parametrize("error", [ImportError("numba"), TypingError("no")])
def test_none_where_it_cannot_be_compiled(error: Exception) -> None:
    def compile_it(_: TorchThreads) -> int:
        raise error

    assert load_kernel(compile_it) is None


def test_other_errors_are_not_hidden() -> None:
    def compile_it(_: TorchThreads) -> int:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        load_kernel(compile_it)
