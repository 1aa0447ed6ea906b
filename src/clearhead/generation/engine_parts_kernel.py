"""The engine's code in parts that are compiled one by one, and know each other by name only.

numba would compile a function anew into each one that calls it, and into the callers of that one:
the whole step then takes 22 s of a core, by parts 7 s. A part takes and returns whole numbers:
sizes, and addresses of structures.
"""
# numba's decorators have no types, and what its vectors are is known to LLVM alone.
# mypy: disable-error-code="untyped-decorator, no-any-return"

from __future__ import annotations

import ctypes
import functools
import hashlib
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import binding
from numba import types
from numba.extending import intrinsic

from clearhead.generation import engine_structures as structures


class Part(NamedTuple):
    """A function and the name under which it is found once it is compiled."""

    function: Callable[..., Any]
    symbol: str
    signature: Any


_parts: list[Part] = []


def part(function: Callable[..., Any]) -> Any:
    """Make a function of whole numbers a part. Returns what others call."""
    count = len(inspect.signature(function).parameters)
    returns = types.int64 if function.__annotations__["return"] in ("int", int) else types.void
    signature = returns(*[types.int64] * count)
    symbol = f"clearhead_engine_{function.__name__}"
    _parts.append(Part(function, symbol, signature))
    return types.ExternalFunction(symbol, signature)


def compiled_parts(tell: Callable[[int, int], None]) -> None:
    """Compile all parts, or load them from numba's cache; ``tell(done, total)`` goes along."""
    for number, one in enumerate(_parts):
        tell(number, len(_parts))
        binding.add_symbol(one.symbol, compiled(one.function, one.signature).address)
    tell(len(_parts), len(_parts))


@functools.cache
def sources_digest() -> str:
    """A digest of all the code that is compiled: numba's cache looks at one file only."""
    files = sorted(Path(__file__).parent.glob("engine*_kernel.py"))
    files.append(Path(__file__).with_name("engine_structures.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


@functools.cache  # and so the machine code stays where it is
def compiled(function: Callable[..., Any], signature: Any) -> Any:
    """A C function, out of numba's cache if it is there."""
    function.__qualname__ = f"{function.__name__}_{sources_digest()}"
    try:
        return numba.cfunc(signature, error_model="numpy", cache=True)(function)
    except (RuntimeError, OSError):  # no folder that numba may write to, or a full disk
        return numba.cfunc(signature, error_model="numpy")(function)


def record_at(structure: type[ctypes.Structure]) -> Any:
    """A function for numba: the structure at an address, its fields readable by name."""
    kind = numba.from_dtype(np.dtype(structure))

    @intrinsic
    def at(_typing: Any, _address: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
            return builder.inttoptr(values[0], context.get_value_type(kind))

        return kind(types.int64), generate

    return at


step_at, pack_at = record_at(structures.Step), record_at(structures.Pack)
matrix_at, norm_at = record_at(structures.Matrix), record_at(structures.Norm)
attention_at = record_at(structures.Attention)
feed_forward_at = record_at(structures.FeedForward)
