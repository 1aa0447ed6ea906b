"""The compiled functions that unpack blocks: out of kept machine code, or made by numba.

``kernels/unpacking`` imports numba. Once its machine code is kept, nothing here imports it.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable

from clearhead.kernels.machine_code import MachineCode, machine_code, sources_of

SOURCES = sources_of(__file__)
UNPACKED = (
    "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K",
    "F16", "BF16", "F32", "IQ4_NL",
)  # fmt: skip
"""The kinds that have such a function; a test compares them with ``kernels/unpacking``."""


class Rows(ctypes.Structure):
    """Rows to unpack: row i of ``target`` is row ``order[i]`` of ``source``."""

    _fields_ = [
        (name, ctypes.c_int64)
        for name in ("source", "row_bytes", "blocks", "order", "rows", "target", "row", "unpack")
    ]


@functools.cache
def unpack_function(kind: str) -> int:
    """What unpacks blocks of a kind: the address of f(blocks, count, target)."""

    def build() -> int:
        from clearhead.checkpoints.gguf.kernels import unpacking

        return unpacking.unpack_function(kind)

    return _function(f"unpack_{kind}", build)


@functools.cache
def rows_function() -> int:
    """What unpacks rows on this thread: the address of f(structure :class:`Rows`)."""

    def build() -> int:
        from clearhead.checkpoints.gguf.kernels import unpacking

        return unpacking.rows_function()

    return _function("unpack_rows", build)


def _function(name: str, build: Callable[[], int]) -> int:
    found = machine_code(f"gguf.{name}", SOURCES, lambda: MachineCode({name: build()}))
    return found.addresses[name]
