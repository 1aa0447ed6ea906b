"""From a function to machine code, kept on disk under a digest of all sources."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numba
import pytest
from numba import carray, types

from clearhead.kernels import compiling
from clearhead.kernels.compiling import compiled, record_at, record_of, sources_digest


class Pair(ctypes.Structure):
    _fields_ = [("first", ctypes.c_int64), ("second", ctypes.c_float)]


def summed(pairs: Any) -> Any:
    pair = carray(pairs, 1)[0]
    return pair.first + pair.second


def test_a_structure_is_read_by_its_fields() -> None:
    function = compiled(summed, types.float64(types.CPointer(record_of(Pair))))
    called = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_void_p)(function.address)
    assert called(ctypes.addressof(Pair(7, 2.5))) == 9.5


def test_a_structure_at_an_address() -> None:
    pair_at = record_at(Pair)

    @numba.njit
    def second(address: int) -> float:
        return pair_at(address).second  # type: ignore[no-any-return]

    pair = Pair(7, 2.5)
    assert second(ctypes.addressof(pair)) == 2.5


def test_the_digest_follows_every_source(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text("a = 1\n")
    before = sources_digest.__wrapped__(tmp_path)
    assert sources_digest.__wrapped__(tmp_path) == before
    (tmp_path / "kernel.py").write_text("a = 2\n")
    changed = sources_digest.__wrapped__(tmp_path)
    (tmp_path / "other.py").write_text("")
    assert len({before, changed, sources_digest.__wrapped__(Path(compiling.__file__).parent)}) == 3


@pytest.mark.parametrize("error", [RuntimeError, OSError])
def test_compiles_without_a_cache_where_none_can_be_written(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    cached: list[bool] = []

    def cfunc(signature: Any, *, error_model: str, cache: bool = False) -> Any:
        cached.append(cache)
        if cache:
            raise error("no locator available")
        return lambda function: function

    monkeypatch.setattr(numba, "cfunc", cfunc)
    assert compiled.__wrapped__(summed, None) is summed
    assert cached == [True, False]
