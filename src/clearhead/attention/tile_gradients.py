"""The gradient of attention over tiles of queries, on CPUs: what training needs.

Gradients of query, key and value from what ``tiles.py`` found: its output and log-sum-exps. How it
is computed, in a language that numba compiles, is in ``attention/kernels/tile_gradients.py``; it
runs on the threads of ``kernels/threads.py``.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from clearhead.attention.masks import WHOLE, Band
from clearhead.attention.tiles import EVERYTHING, FLOAT_BYTES, PAGE
from clearhead.kernels.loading import load_kernel
from clearhead.kernels.machine_code import MachineCode, machine_code, sources_of
from clearhead.kernels.scratch import SCRATCH
from clearhead.kernels.threads import TorchThreads


def gradients_apply() -> bool:
    """True if :func:`tile_gradients` can compute what :func:`tile_attention` can."""
    return _kernel() is not None


def tile_gradients(
    gradient: Float[Tensor, "batch head query value_dim"],
    query: Float[Tensor, "batch head query key_dim"],
    key: Float[Tensor, "batch kv_head key key_dim"],
    value: Float[Tensor, "batch kv_head key value_dim"],
    output: Float[Tensor, "batch head query value_dim"],
    logsum: Float[Tensor, "batch head query"],
    *,
    scale: float,
    band: Band = WHOLE,
    softcap: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of query, key and value."""
    kernel = _kernel()
    if kernel is None:
        raise RuntimeError("this machine cannot run the kernel: ask gradients_apply first")
    batch, heads, queries, key_dim = query.shape
    _, kv_heads, keys, value_dim = value.shape
    # Heads side by side, as the backward of the projections wants it.
    to_query = torch.zeros(batch, queries, heads, key_dim).transpose(1, 2)
    to_key, to_value = _for_heads(batch, keys, heads, key_dim, value_dim)
    of_key, of_value, finished = to_key, to_value, None
    if heads != kv_heads:
        of_key, of_value = _for_heads(batch, keys, kv_heads, key_dim, value_dim)
        finished = torch.zeros(batch, kv_heads, dtype=torch.int64)
    threads = torch.get_num_threads()
    each = -(-kernel.scratch_floats(key_dim, value_dim) * FLOAT_BYTES // PAGE) * PAGE
    sums = batch * heads * queries * FLOAT_BYTES
    scratch = SCRATCH.floats((threads * each + sums + PAGE) // FLOAT_BYTES).data_ptr()
    scratch = -(-scratch // PAGE) * PAGE
    taken = ctypes.c_int64(0)
    tensors = (query, key, value, output, gradient, to_query, to_key, to_value, of_key, of_value)
    work = WORK.pack(
        batch, heads, kv_heads, queries, keys, key_dim, value_dim,
        keys - queries if band.offset is None else band.offset,
        EVERYTHING if band.before is None else band.before,
        EVERYTHING if band.after is None else band.after,
        *[step for tensor in tensors for step in tensor.stride()[:3]],
        *[tensor.data_ptr() for tensor in tensors],
        logsum.data_ptr(), scratch + threads * each, 0 if finished is None else finished.data_ptr(),
        scratch, each, ctypes.addressof(taken), scale, 0.0 if softcap is None else softcap,
    )  # fmt: skip
    kernel.threads.run(kernel.differentiate, work, threads)
    return to_query, of_key, of_value


def _for_heads(
    batch: int, keys: int, heads: int, key_dim: int, value_dim: int
) -> tuple[Tensor, Tensor]:
    """Memory for the gradients of keys and values."""
    to_key = torch.empty(batch, keys, heads, key_dim).transpose(1, 2)
    return to_key, torch.empty(batch, keys, heads, value_dim).transpose(1, 2)


_TENSORS = (
    *("query", "key", "value", "output", "gradient", "to_query", "to_key", "to_value"),
    *("shared_key", "shared_value"),
)


class Work(ctypes.Structure):
    """The arguments of one call: sizes, band, strides (in floats), addresses, scale, softcap."""

    _fields_ = [
        *(
            (name, ctypes.c_int64)
            for name in (
                *("batch", "heads", "kv_heads", "queries", "keys", "key_dim", "value_dim"),
                *("offset", "before", "after"),
                *(f"{name}_{axis}" for name in _TENSORS for axis in ("batch", "head", "row")),
                *(*_TENSORS, "logsum", "sums", "finished"),
                *("scratch", "scratch_bytes", "taken"),
            )
        ),
        ("scale", ctypes.c_float),
        ("softcap", ctypes.c_float),
    ]


WORK = struct.Struct(f"{len(Work._fields_) - 2}q2f")  # its memory, written in one go


class _Kernel(NamedTuple):
    """The compiled function, its threads, and the sizes that it was compiled for."""

    threads: TorchThreads
    differentiate: int  # an address
    keys: int  # of a block
    line: int  # queries of a tile
    lines: int  # of a tile's state
    wide: bool  # a register holds a vector

    def scratch_floats(self, key_dim: int, value_dim: int) -> int:
        """Scratch numbers of one thread: a block of keys, a tile of queries, weights."""
        key_row, value_row = (-(-width // self.line) * self.line for width in (key_dim, value_dim))
        block = 2 * self.keys * (key_row + value_row)
        tile = self.line * (3 * key_row + 2 * value_row + self.lines)
        return block + tile + 2 * self.keys * self.line


@functools.cache
def _kernel() -> _Kernel | None:
    """The compiled kernel; None where this machine cannot run it."""
    return load_kernel(_compile)


def _compile(threads: TorchThreads) -> _Kernel | None:
    """The kernel; None where the processor cannot multiply and add in one step."""
    code = machine_code("attention.tile_gradients", sources_of(__file__), _build)
    return None if code is None else _Kernel(threads, code.addresses["differentiate"], **code.facts)


def _build() -> MachineCode | None:
    from numba import types

    from clearhead.attention.kernels.tile_gradients import KEYS, STATE_LINES, differentiate
    from clearhead.attention.kernels.tile_product import LINE
    from clearhead.kernels.compiling import compiled, record_of
    from clearhead.kernels.operations import fuses, has_wide_registers

    if not fuses():
        return None
    address = compiled(differentiate, types.void(types.CPointer(record_of(Work)))).address
    facts = {"keys": KEYS, "line": LINE, "lines": STATE_LINES, "wide": has_wide_registers()}
    return MachineCode({"differentiate": int(address)}, facts)
