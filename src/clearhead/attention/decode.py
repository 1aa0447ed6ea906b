"""Attention of a few queries over many cached keys, on CPUs: what a decoding step needs.

softmax(cap(scale·q·kᵀ))·v for queries that see every key. Here: when that is right and faster than
torch, and the call. How it is computed, in a language that numba compiles, is in
``attention/kernels/decode.py``; it runs on the threads of ``kernels/threads.py``.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from clearhead.kernels.loading import load_kernel
from clearhead.kernels.machine_code import MachineCode, machine_code, sources_of
from clearhead.kernels.plain_tensors import is_plain, is_recorded, is_transformed
from clearhead.kernels.scratch import SCRATCH
from clearhead.kernels.threads import TorchThreads

# About how many µs torch's fused kernel and this one take for one query of width 64 (2 cores that
# were not idle, AVX-512); with fewer keys there is little or nothing to gain:
#
#     keys             128    192    256  1,024    4,096
#     9 heads over 3 15/13         22/19  76/45  291/145
#     8 heads over 8        18/17         64/48
#     8 heads over 1        17/17         60/36
#
# A batch of 8 with 8 heads over 8 draws level from about 4,096 keys on: memory is the limit.
FEWEST_KEYS = 192
# The same for more queries, 9 heads over 3, 1,024 keys: 2 queries about 188/105, 4 142/151,
# 8 221/346. Torch then has matrices to multiply.
MOST_QUERIES = 2
# Where torch has no fused kernel, its plain or padded way and this one take about: with softcap,
# 4 queries 278/177, 16 770/562; value width 32 beside key width 64, 4 queries 331/137, 16 531/423.
MOST_QUERIES_UNFUSED = 16


def decode_applies(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    softcap: float | None = None,
    sinks: Tensor | None = None,
) -> bool:
    """True if :func:`decode_attention` can compute these tensors, and is faster than torch.

    The first True takes about 4 s once on a machine, while the kernel is compiled, and 0.5 s in
    later processes, which find it in numba's cache (most of that is ``import numba``).
    """
    return (
        is_plain(query)
        and is_plain(key)
        and is_plain(value)
        and _axes_fit(query.shape, key.shape, value.shape, softcap)
        and (sinks is None or (is_plain(sinks) and sinks.shape == query.shape[1:2]))
        and not is_transformed()
        and not is_recorded()
        and _kernel() is not None
    )


def _axes_fit(
    asks: torch.Size, keys: torch.Size, values: torch.Size, softcap: float | None
) -> bool:
    """True if no axis is broadcast or wrong: the kernel reads memory without further checks."""
    if not len(asks) == len(keys) == len(values) == 4:
        return False
    batch, heads, queries, key_dim = asks
    kv_batch, kv_heads, key_count, kv_key_dim = keys
    most = MOST_QUERIES if softcap is None and key_dim == values[3] else MOST_QUERIES_UNFUSED
    return (
        kv_batch == batch
        and kv_key_dim == key_dim
        and key_count >= FEWEST_KEYS
        and 1 <= queries <= most
        and values[:3] == keys[:3]
        and kv_heads > 0
        and heads % kv_heads == 0
    )


def decode_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    scale: float,
    softcap: float | None = None,
    sinks: Tensor | None = None,
) -> Tensor:
    """softmax(cap(scale·q·kᵀ))·v where every query sees every key.

    ``query`` (batch, head, query, key_dim), ``key`` (batch, kv_head, key, key_dim) and ``value``
    (batch, kv_head, key, value_dim) may be views of a larger cache: nothing is copied. cap(s) is
    softcap·tanh(s/softcap). ``sinks`` (head,) are logits that join the denominator only. Returns
    (batch, head, query, value_dim). A NaN gives NaN in the rows that use it. Only for tensors to
    which :func:`decode_applies`, or that differ from such only in their number of keys or queries:
    nothing is checked here.
    """
    return _attended(query, key, value, scale, softcap, sinks)[0]


def decode_step(query: Tensor, key: Tensor, value: Tensor, scale: float | None) -> Tensor | None:
    """The lean way through for the plainest decoding step: no mask, no option.

    A step over 1,024 keys takes the kernel about 40 µs, and checks that explain what is wrong take
    half of that again. None if the kernel does not apply or finds NaN: the long way then says why.
    """
    shape: tuple[int, ...] = getattr(query, "shape", ())
    if len(shape) != 4 or shape[2] != 1 or not decode_applies(query, key, value):
        return None
    scale = shape[3] ** -0.5 if scale is None else scale
    output, sound = _attended(query, key, value, scale, None, None)
    return output if sound else None


def _attended(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    scale: float,
    softcap: float | None,
    sinks: Tensor | None,
) -> tuple[Tensor, bool]:
    """The output, and True if it holds no NaN."""
    kernel = _kernel()
    if kernel is None:
        raise RuntimeError("this machine cannot run the kernel: ask decode_applies first")
    batch, heads, queries, key_dim = query.shape
    _, kv_heads, keys, value_dim = value.shape
    threads, rows = torch.get_num_threads(), heads // kv_heads * queries
    chunks = -(-keys // kernel.chunk)
    output = torch.empty(batch, heads, queries, value_dim)
    scores = threads * rows * kernel.chunk
    partials = batch * kv_heads * chunks * rows * (value_dim + 2)
    scratch = SCRATCH.floats(scores + partials).data_ptr()
    asks, has, gives = query.stride(), key.stride(), value.stride()
    step = STEP.pack(
        batch, heads, kv_heads, queries, keys, key_dim, value_dim, rows, chunks,
        asks[0], asks[1], asks[2], has[0], has[1], has[2], gives[0], gives[1], gives[2],
        query.data_ptr(), key.data_ptr(), value.data_ptr(),
        0 if sinks is None else sinks.data_ptr(),
        scratch, scratch + scores * FLOAT_BYTES, output.data_ptr(),
        scale, 0.0 if softcap is None else softcap,
    )  # fmt: skip
    kernel.threads.run(kernel.attend, step, threads)
    return output, kernel.merge(step) == 0


FLOAT_BYTES = 4


class Step(ctypes.Structure):
    """The arguments of one call: sizes, strides (in floats), addresses, scale and softcap.

    ``rows`` are the query rows that share one key/value head: heads / kv_heads · queries.
    """

    _fields_ = [
        *(
            (name, ctypes.c_int64)
            for name in (
                *("batch", "heads", "kv_heads", "queries", "keys", "key_dim", "value_dim"),
                *("rows", "chunks"),
                *("query_batch", "query_head", "query_row"),
                *("key_batch", "key_head", "key_row"),
                *("value_batch", "value_head", "value_row"),
                *("query", "key", "value", "sinks", "scores", "partials", "output"),
            )
        ),
        ("scale", ctypes.c_float),
        ("softcap", ctypes.c_float),
    ]


STEP = struct.Struct(f"{len(Step._fields_) - 2}q2f")  # its memory, written in one go


class _Kernel(NamedTuple):
    """The two compiled functions of a step, the threads of the first, and the keys of a chunk."""

    threads: TorchThreads
    attend: int  # an address
    merge: Callable[[bytes], int]
    chunk: int


@functools.cache
def _kernel() -> _Kernel | None:
    """The compiled kernel; None where this machine cannot run it."""
    return load_kernel(_compile)


def _compile(threads: TorchThreads) -> _Kernel:
    code = machine_code("attention.decode", sources_of(__file__), _build)
    merge_prototype = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_char_p)
    merge = merge_prototype(code.addresses["merge"])
    return _Kernel(threads, code.addresses["attend"], merge, code.facts["chunk"])


def _build() -> MachineCode:
    from numba import types

    from clearhead.attention.kernels.decode import CHUNK, attend, merge
    from clearhead.kernels.compiling import compiled, record_of

    step = types.CPointer(record_of(Step))
    addresses = {
        "attend": int(compiled(attend, types.void(step)).address),
        "merge": int(compiled(merge, types.int64(step)).address),
    }
    return MachineCode(addresses, {"chunk": CHUNK})
