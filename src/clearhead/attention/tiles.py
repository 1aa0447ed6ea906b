"""Attention over tiles of queries, on CPUs: what prompts and whole texts need.

softmax(cap(scale·q·kᵀ), hidden outside a band)·v and the log-sum-exps, without a gradient. A band
is what causal masks and windows leave of the map: each query sees so many keys before the one that
it stands at, and so many after it. Here: when that is right, and the call. How it is computed, in
a language that numba compiles, is in ``attention/kernels/tiles.py``; it runs on the threads of
``kernels/threads.py``.
"""

from __future__ import annotations

import ctypes
import functools
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from clearhead.attention.masks import WHOLE, Band
from clearhead.kernels.loading import load_kernel
from clearhead.kernels.machine_code import MachineCode, machine_code, sources_of
from clearhead.kernels.plain_tensors import is_float, is_recorded, is_transformed
from clearhead.kernels.scratch import SCRATCH
from clearhead.kernels.threads import TorchThreads

FEWEST_KEYS = 193  # with fewer, three_products.py is as quick, and needs no compiler
# A tile has 32 queries, real or not. 9 heads over 3 took of flash's time, over 1,024 keys and over
# 4,096: with 8 queries 1.06 and 1.44, with 12 1.13 and 0.95, with 16 0.76 and 0.72.
FEWEST_QUERIES = 12
# Queries and keys, where a gradient is wanted. 12 rows with 4 heads of width 32 took of flash's
# time, forward and backward: 16 tokens 1.23, 24 tokens 0.81, 32 tokens 0.77, 64 tokens 0.73.
FEWEST_TRAINED = 24
PAGE = 4096  # bytes; threads do not share one
FLOAT_BYTES = 4
EVERYTHING = 1 << 40  # keys: more than anybody has


def tiles_apply(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    band: Band = WHOLE,
    softcap: float | None = None,
    *,
    trained: bool = False,
) -> bool:
    """True if :func:`tile_attention` can compute tensors that fit each other, and is the quickest;
    ``trained``: if a gradient is wanted, together with ``tile_gradients.py``.

    The first True takes about 4 s once on a machine, while the kernel is compiled, and 0.5 s in
    later processes, which find it in numba's cache (most of that is ``import numba``).
    """
    fewest_queries = FEWEST_TRAINED if trained else FEWEST_QUERIES
    fewest_keys = FEWEST_TRAINED if trained else FEWEST_KEYS
    if key.shape[2] < fewest_keys or query.shape[2] < fewest_queries:
        return False
    if not (is_float(query) and is_float(key) and is_float(value)):
        return False
    if is_transformed() or is_recorded():
        return False
    kernel = _kernel()
    if kernel is None or value.shape[3] % kernel.rows != 0:
        return False
    flash_can = softcap is None and query.shape[3] == value.shape[3]
    if flash_can and band.before is band.after is None:
        return kernel.wide  # otherwise flash is as quick where it need not compute in vain
    return True


def tile_attention(
    query: Float[Tensor, "batch head query key_dim"],
    key: Float[Tensor, "batch kv_head key key_dim"],
    value: Float[Tensor, "batch kv_head key value_dim"],
    *,
    scale: float,
    band: Band = WHOLE,
    softcap: float | None = None,
) -> tuple[Float[Tensor, "batch head query value_dim"], Float[Tensor, "batch head query"]]:
    """Output and log-sum-exp of tensors to which :func:`tiles_apply`; both 0 for a query that sees
    nothing. Nothing is copied, and beside the result no memory is needed that grows."""
    kernel = _kernel()
    if kernel is None:
        raise RuntimeError("this machine cannot run the kernel: ask tiles_apply first")
    batch, heads, queries, key_dim = query.shape
    _, kv_heads, keys, value_dim = value.shape
    # As flash leaves it, and as the projection that follows wants it: heads side by side.
    output = torch.empty(batch, queries, heads, value_dim).transpose(1, 2)
    logsum = torch.empty(batch, heads, queries)
    threads = torch.get_num_threads()
    needed = kernel.scratch_floats(key_dim, value_dim) * FLOAT_BYTES
    each = -(-needed // PAGE) * PAGE
    scratch = SCRATCH.floats((threads * each + PAGE) // FLOAT_BYTES).data_ptr()
    taken = ctypes.c_int64(0)
    work = Work(
        batch, heads, kv_heads, queries, keys, key_dim, value_dim,
        keys - queries if band.offset is None else band.offset,
        EVERYTHING if band.before is None else band.before,
        EVERYTHING if band.after is None else band.after,
        *query.stride()[:3], *key.stride()[:3], *value.stride()[:3], *output.stride()[:3],
        query.data_ptr(), key.data_ptr(), value.data_ptr(), output.data_ptr(), logsum.data_ptr(),
        -(-scratch // PAGE) * PAGE, each, ctypes.addressof(taken),
        scale, 0.0 if softcap is None else softcap,
    )  # fmt: skip
    kernel.threads.run(kernel.attend, ctypes.byref(work), threads)
    return output, logsum


class Work(ctypes.Structure):
    """The arguments of one call: sizes, band, strides (in floats), addresses, scale, softcap."""

    _fields_ = [
        *(
            (name, ctypes.c_int64)
            for name in (
                *("batch", "heads", "kv_heads", "queries", "keys", "key_dim", "value_dim"),
                *("offset", "before", "after"),
                *("query_batch", "query_head", "query_row"),
                *("key_batch", "key_head", "key_row"),
                *("value_batch", "value_head", "value_row"),
                *("output_batch", "output_head", "output_row"),
                *("query", "key", "value", "output", "logsum"),
                *("scratch", "scratch_bytes", "taken"),
            )
        ),
        ("scale", ctypes.c_float),
        ("softcap", ctypes.c_float),
    ]


class _Kernel(NamedTuple):
    """The compiled function, its threads, and the sizes that it was compiled for."""

    threads: TorchThreads
    attend: int  # an address
    rows: int  # of a tile of values: their number must be a multiple
    line: int  # queries of a tile
    tiles: int  # of a task
    lines: int  # of scores, and of a tile's state
    wide: bool  # a register holds a vector

    def scratch_floats(self, key_dim: int, value_dim: int) -> int:
        """Scratch numbers of one thread: scores, then the tiles of a task."""
        return (self.lines + self.tiles * (key_dim + value_dim)) * self.line


@functools.cache
def _kernel() -> _Kernel | None:
    """The compiled kernel; None where this machine cannot run it."""
    return load_kernel(_compile)


def _compile(threads: TorchThreads) -> _Kernel | None:
    """The kernel; None where the processor cannot multiply and add in one step."""
    code = machine_code("attention.tiles", sources_of(__file__), _build)
    return None if code is None else _Kernel(threads, code.addresses["attend"], **code.facts)


def _build() -> MachineCode | None:
    from numba import types

    from clearhead.attention.kernels.tile_product import LINE, ROWS
    from clearhead.attention.kernels.tiles import LINES, TILES, attend
    from clearhead.kernels.compiling import compiled, record_of
    from clearhead.kernels.operations import fuses, has_wide_registers

    if not fuses():
        return None
    address = compiled(attend, types.void(types.CPointer(record_of(Work)))).address
    facts = {
        "rows": ROWS, "line": LINE, "tiles": TILES, "lines": LINES, "wide": has_wide_registers()
    }  # fmt: skip
    return MachineCode({"attend": int(address)}, facts)
