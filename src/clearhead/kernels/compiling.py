"""From a function in the part of Python that numba knows to machine code, kept on disk.

numba's cache notices a change of the function's own file only, but kernels are compiled into each
other. So the name under which one is kept holds a digest of all of them.
"""
# numba's decorators have no types.
# mypy: disable-error-code="untyped-decorator, no-any-return"

from __future__ import annotations

import ctypes
import functools
import hashlib
import inspect
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

import numba
import numpy as np
from numba import types
from numba.extending import intrinsic

INLINED = {
    "error_model": "numpy",  # no check for division by zero
    "forceinline": True,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}


@functools.cache
def sources_digest(folder: Path) -> str:
    """A digest of all code that a kernel in this folder may be compiled from."""
    places = sorted({Path(__file__).parent, folder})
    files = [file for place in places for file in sorted(place.glob("*.py"))]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


@functools.cache  # and so the machine code stays where it is
def compiled(function: Callable[..., Any], signature: Any) -> Any:
    """A C function, out of numba's cache if it is there."""
    folder = Path(inspect.getfile(function)).parent
    function.__qualname__ = f"{function.__name__}_{sources_digest(folder)}"
    try:
        made = numba.cfunc(signature, error_model="numpy", cache=True)(function)
    except (RuntimeError, OSError):  # no folder that numba may write to, or a full disk
        return numba.cfunc(signature, error_model="numpy")(function)
    _by_address[getattr(made, "address", 0)] = made
    return made


_by_address: dict[int, Any] = {}


def object_at(address: int) -> tuple[str, bytes] | None:
    """The symbol and the object file of a compiled function, out of numba's cache.

    None if it is not there: nothing could be written, or numba keeps it in another way.
    """
    made = _by_address.get(address)
    if made is None:
        return None
    try:
        key = made._cache._index_key(made._sig, made._targetdescr.target_context.codegen())
        _, kind, (code, *_) = made._cache._cache_file.load(key)[0]
    except (AttributeError, TypeError, ValueError, IndexError, KeyError):
        return None
    return (made.native_name, code) if kind == "object" and isinstance(code, bytes) else None


def bound(template: Callable[..., Any], name: str, **values: Any) -> Callable[..., Any]:
    """A copy of a function in which these global names have these values.

    One template serves several kinds of data with it. A closure would not do: numba writes what a
    closure holds into the key of its cache, and a compiled function differs in every process.
    """
    assert isinstance(template, FunctionType)
    copy = FunctionType(template.__code__, {**template.__globals__, **values}, name)
    copy.__module__, copy.__annotations__ = template.__module__, template.__annotations__
    return copy


def record_of(structure: type[ctypes.Structure]) -> Any:
    """numba's type of a structure, its fields readable by name."""
    return numba.from_dtype(np.dtype(structure))


def record_at(structure: type[ctypes.Structure]) -> Any:
    """A function for numba: the structure at an address."""
    kind = record_of(structure)

    @intrinsic
    def at(_typing: Any, _address: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
            return builder.inttoptr(values[0], context.get_value_type(kind))

        return kind(types.int64), generate

    return at
