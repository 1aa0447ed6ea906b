"""Operations on vectors of 16 numbers, called from a test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from clearhead.kernels.memory import load_floats, load_ints, store_floats, store_ints

LANES = 16
Floats = NDArray[np.float32]
Ints = NDArray[np.int32]


def on_floats(function: Any, arguments: int) -> Callable[..., Floats]:
    """The function of so many vectors of float32 numbers, for arrays of 16."""
    if arguments == 1:

        @numba.njit
        def one(result: int, first: int) -> None:
            store_floats(result, function(load_floats(first)))

        made = one
    elif arguments == 2:

        @numba.njit
        def two(result: int, first: int, second: int) -> None:
            store_floats(result, function(load_floats(first), load_floats(second)))

        made = two
    else:

        @numba.njit
        def three(result: int, first: int, second: int, third: int) -> None:
            vectors = load_floats(first), load_floats(second), load_floats(third)
            store_floats(result, function(vectors[0], vectors[1], vectors[2]))

        made = three

    def called(*given: Any) -> Floats:
        arrays = [np.ascontiguousarray(array, np.float32) for array in given]
        result = np.empty(LANES, np.float32)
        made(result.ctypes.data, *(array.ctypes.data for array in arrays))
        return result

    return called


def on_ints(function: Any) -> Callable[[Any], Ints]:
    """The function of one vector of 32-bit whole numbers, for an array of 16."""

    @numba.njit
    def one(result: int, first: int) -> None:
        store_ints(result, function(load_ints(first)))

    def called(given: Any) -> Ints:
        array, result = np.ascontiguousarray(given, np.int32), np.empty(LANES, np.int32)
        one(result.ctypes.data, array.ctypes.data)
        return result

    return called
