"""Parts: functions that are compiled separately and call each other by the name of their symbol.

numba would compile a function again into each caller, and into the callers of that one: the whole
step then takes 22 s of a core, by parts 7 s. A part takes and returns integers: sizes, and
addresses of structures.
"""
# numba's decorators have no types, and only LLVM knows the type of a vector.
# mypy: disable-error-code="untyped-decorator, no-any-return"

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite import binding
from numba import types

from clearhead.engine.kernels import structures
from clearhead.kernels.compiling import compiled, record_at


class Part(NamedTuple):
    """A function, the name of its symbol once it is compiled, and its signature."""

    function: Callable[..., Any]
    symbol: str
    signature: Any


_parts: list[Part] = []


def part(function: Callable[..., Any]) -> Any:
    """Declare a function of integers to be a part; return the function that other parts call."""
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


step_at, pack_at = record_at(structures.Step), record_at(structures.Pack)
interleave_at = record_at(structures.Interleave)
matrix_at, norm_at = record_at(structures.Matrix), record_at(structures.Norm)
attention_at = record_at(structures.Attention)
feed_forward_at = record_at(structures.FeedForward)
