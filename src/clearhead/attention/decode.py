"""Attention of a few queries over many cached keys, on CPUs: the kernel of a decoding step.

softmax(cap(scale·q·kᵀ))·v for queries that see every key. One task takes one key/value head and
``CHUNK`` of its keys, and serves all query rows of that head's group, so a cached key or value is
fetched from memory once however many query heads share it. A task leaves, per query row, its
largest score, Σ exp(score − largest) and Σ exp(score − largest)·v; then the tasks of each row are
merged by their largest scores (the online softmax of Milakov and Gimelshein, 2018).

The kernel is Python compiled by numba, and it runs on the OpenMP threads that torch already has:
numba's own threads would fight with torch's waiting ones for the cores (on 2 cores a 576×576
matrix-vector product takes 36 µs, and 217 µs when an empty numba ``prange`` follows it).
"""

from __future__ import annotations

import ctypes
import functools
import inspect
import math
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.autograd import forward_ad

# Chunks are cut by key number alone, never by batch size or thread count, so the bits of a row
# depend on nothing but the row.
CHUNK = 128
# A loop of constant length lives in registers; 64 is the usual head width.
LANES = 64
FLOAT_BYTES = 4

# Below this, torch's fused kernel is as fast (µs, torch / ours with decode_applies; 2 cores,
# AVX-512, width 64). Heads 9 over 3: 128 keys 15/16, 256 25/20, 1,024 76/43, 4,096 280/140;
# heads 8 over 8: 192 keys 18/17, 1,024 64/48; heads 8 over 1: 192 keys 17/17, 1,024 60/36.
FEWEST_KEYS = 192
# At 1,024 keys, heads 9 over 3: 2 queries 188/105, 4 142/151, 8 221/346. Torch then has
# matrices to multiply.
MOST_QUERIES = 2
# Where torch has no fused kernel (plain or padded / ours): softcap, 4 queries 278/177, 16 770/562;
# value width 32 beside key width 64, 4 queries 331/137, 16 531/423.
MOST_QUERIES_UNFUSED = 16


def decode_applies(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    softcap: float | None = None,
    sinks: Tensor | None = None,
) -> bool:
    """Whether :func:`decode_attention` is right for these, and faster than torch.

    The first True takes about 4 s once on a machine, while the kernel is compiled, and 0.5 s in
    later processes, which find it in numba's cache (most of that is ``import numba``).
    """
    fused = softcap is None and key.shape[-1] == value.shape[-1]
    return (
        query.ndim == key.ndim == value.ndim == 4
        and key.shape[2] >= FEWEST_KEYS
        and 1 <= query.shape[2] <= (MOST_QUERIES if fused else MOST_QUERIES_UNFUSED)
        and _axes_fit(query, key, value, sinks)
        and _plain(query)
        and _plain(key)
        and _plain(value)
        and (sinks is None or _plain(sinks))
        and forward_ad._current_level < 0
        and not torch._C._are_functorch_transforms_active()
        and _kernel() is not None
    )


def _axes_fit(query: Tensor, key: Tensor, value: Tensor, sinks: Tensor | None) -> bool:
    """Whether no axis is broadcast or wrong: the kernel reads memory without asking again."""
    batch, heads, _, key_dim = query.shape
    kv_batch, kv_heads, keys, kv_key_dim = key.shape
    return (
        (kv_batch, kv_key_dim) == (batch, key_dim)
        and value.shape[:3] == (batch, kv_heads, keys)
        and kv_heads > 0
        and heads % kv_heads == 0
        and (sinks is None or sinks.shape == (heads,))
    )


def _plain(tensor: Tensor) -> bool:
    """Whether the numbers lie in memory as the kernel reads them, and nobody differentiates."""
    return (
        type(tensor) in (Tensor, torch.nn.Parameter)
        and tensor.dtype is torch.float32
        and tensor.is_cpu
        and tensor.stride(-1) == 1
        and not (tensor.requires_grad and torch.is_grad_enabled())
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
    kernel = _kernel()
    if kernel is None:
        raise RuntimeError("this machine cannot run the kernel: ask decode_applies first")
    batch, heads, queries, key_dim = query.shape
    _, kv_heads, keys, value_dim = value.shape
    threads, rows, chunks = torch.get_num_threads(), heads // kv_heads * queries, -(-keys // CHUNK)
    scores = torch.empty(threads, rows, CHUNK)
    partials = torch.empty(batch, kv_heads, chunks, rows, value_dim + 2)
    output = torch.empty(batch, heads, queries, value_dim)
    step = _Step(
        *(batch, heads, kv_heads, queries, keys, key_dim, value_dim),
        *(*query.stride()[:3], *key.stride()[:3], *value.stride()[:3]),
        *(query.data_ptr(), key.data_ptr(), value.data_ptr()),
        0 if sinks is None else sinks.data_ptr(),
        *(scores.data_ptr(), partials.data_ptr(), output.data_ptr()),
        scale,
        0.0 if softcap is None else softcap,
    )
    kernel.parallel(kernel.attend_address, ctypes.byref(step), threads, 0)
    kernel.merge(ctypes.byref(step))
    return output


class _Step(ctypes.Structure):
    """What one call computes: sizes, addresses, strides (in floats) and the two numbers."""

    _fields_ = [
        *(
            (name, ctypes.c_int64)
            for name in (
                *("batch", "heads", "kv_heads", "queries", "keys", "key_dim", "value_dim"),
                *("query_batch", "query_head", "query_row"),
                *("key_batch", "key_head", "key_row"),
                *("value_batch", "value_head", "value_row"),
                *("query", "key", "value", "sinks", "scores", "partials", "output"),
            )
        ),
        ("scale", ctypes.c_float),
        ("softcap", ctypes.c_float),
    ]


# The kernel: numba compiles what follows, down to ``_merge``, when it is first needed.
# Constants are float32, because a Python float would drag the computation to float64.
ZERO = np.float32(0)
ONE = np.float32(1)
TWO = np.float32(2)
MINUS_INFINITY = np.float32(-np.inf)
LOG2_E = np.float32(1 / math.log(2))
LN2_HIGH = np.float32(355 / 512)  # so few bits that n·LN2_HIGH is exact
LN2_LOW = np.float32(math.log(2) - 355 / 512)
ROUNDER = np.float32(1.5 * 2**23)  # x + ROUNDER holds x's nearest whole number in its last bits
SMALLEST_EXPONENT = np.float32(-87)  # e⁻⁸⁷ = 2⁻¹²⁶·1.4: below it, float32 loses digits
MANTISSA_BITS = np.int32(23)
EXPONENT_BIAS = np.int32(127)
FACTORIAL_2, FACTORIAL_3, FACTORIAL_4, FACTORIAL_5, FACTORIAL_6, FACTORIAL_7 = (
    np.float32(1 / math.factorial(n)) for n in range(2, 8)
)

# What the kernel takes from numba and from OpenMP; ``_compiled_parts`` fills these in.
_carray: Callable[..., Any]
_pointer: Callable[[int], Any]
_lanes_on_stack: Callable[[], Any]
_thread: Callable[[], int]
_thread_count: Callable[[], int]


def _floats(address: Any, count: Any) -> Any:
    """The ``count`` float32 numbers at an address."""
    return _carray(_pointer(address), count, np.float32)


def _exp_parts(x: Any) -> Any:
    """2ⁿ and eʳ−1 with eˣ = 2ⁿ·eʳ, |r| ≤ ln(2)/2, for x ≤ 0. The Taylor series errs by 5e-9."""
    x = SMALLEST_EXPONENT if x < SMALLEST_EXPONENT else x  # this way round, NaN stays NaN
    rounded = x * LOG2_E + ROUNDER
    n = rounded - ROUNDER
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    series = FACTORIAL_6 + r * FACTORIAL_7
    series = FACTORIAL_4 + r * (FACTORIAL_5 + r * series)
    series = FACTORIAL_2 + r * (FACTORIAL_3 + r * series)
    exponent = np.int32(np.float32(rounded).view(np.int32) + EXPONENT_BIAS)
    power = np.int32(exponent << MANTISSA_BITS).view(np.float32)
    return power, r + r * r * series


def _exp(x: Any) -> Any:
    """Eˣ for x ≤ 0, written so that it runs on whole vectors; 0 below -87."""
    power, rest = _exp_parts(x)
    return ZERO if x < SMALLEST_EXPONENT else power + power * rest


def _tanh(x: Any) -> Any:
    """Tanh(x) from e = e^(−2|x|) − 1, which keeps its digits near 0."""
    power, rest = _exp_parts(-TWO * abs(x))
    e = power * rest + (power - ONE)
    return e / (e + TWO) if x < ZERO else -e / (e + TWO)


def _add_scores(scores: Any, count: Any, query: Any, key: Any, stride: Any, width: Any) -> Any:
    """scores[j] += q·kⱼ over ``width`` columns, at most LANES."""
    lanes = _carray(_lanes_on_stack(), LANES, np.float32)  # known not to overlap the arrays
    columns = _floats(query, width)
    for d in range(width):
        lanes[d] = columns[d]
    for j in range(count):
        row = _floats(key + j * stride, width)
        score = ZERO
        for d in range(width):
            score += lanes[d] * row[d]
        scores[j] += score


def _score(scores: Any, count: Any, query: Any, key: Any, stride: Any, key_dim: Any) -> Any:
    """scores[j] = q·kⱼ."""
    for j in range(count):
        scores[j] = ZERO
    whole = key_dim // LANES * LANES
    for d in range(0, whole, LANES):
        offset = d * FLOAT_BYTES
        _add_scores(scores, count, query + offset, key + offset, stride, LANES)
    if whole < key_dim:
        offset = whole * FLOAT_BYTES
        _add_scores(scores, count, query + offset, key + offset, stride, key_dim - whole)


def _scale_and_cap(scores: Any, count: Any, scale: Any, softcap: Any) -> Any:
    """scores = cap(scale·scores)."""
    for j in range(count):
        scores[j] *= scale
    if softcap > ZERO:
        for j in range(count):
            scores[j] = softcap * _tanh(scores[j] / softcap)


def _largest(scores: Any, count: Any) -> Any:
    """The largest score. With a NaN among them it may be any: the row's total is NaN then."""
    largest = scores[0]
    for j in range(count):
        largest = scores[j] if scores[j] > largest else largest
    return largest


def _exponentiate(scores: Any, count: Any, largest: Any) -> Any:
    """scores = exp(scores − largest); returns their total."""
    total = ZERO
    for j in range(count):
        weight = _exp(scores[j] - largest)
        scores[j] = weight
        total += weight
    return total


def _mix_lanes(mixed: Any, weights: Any, count: Any, value: Any, stride: Any, width: Any) -> Any:
    """mixed = Σⱼ wⱼ·vⱼ over ``width`` columns, at most LANES; eight keys to a pass over them."""
    lanes = _carray(_lanes_on_stack(), LANES, np.float32)  # known not to overlap the arrays
    for d in range(width):
        lanes[d] = ZERO
    eights = count // 8 * 8
    for j in range(0, eights, 8):
        w0, w1, w2, w3 = weights[j], weights[j + 1], weights[j + 2], weights[j + 3]
        w4, w5, w6, w7 = weights[j + 4], weights[j + 5], weights[j + 6], weights[j + 7]
        row = value + j * stride
        v0, v1 = _floats(row, width), _floats(row + stride, width)
        v2, v3 = _floats(row + 2 * stride, width), _floats(row + 3 * stride, width)
        v4, v5 = _floats(row + 4 * stride, width), _floats(row + 5 * stride, width)
        v6, v7 = _floats(row + 6 * stride, width), _floats(row + 7 * stride, width)
        for d in range(width):
            first_four = w0 * v0[d] + w1 * v1[d] + w2 * v2[d] + w3 * v3[d]
            last_four = w4 * v4[d] + w5 * v5[d] + w6 * v6[d] + w7 * v7[d]
            lanes[d] += first_four + last_four
    for j in range(eights, count):
        row_values = _floats(value + j * stride, width)
        for d in range(width):
            lanes[d] += weights[j] * row_values[d]
    for d in range(width):
        mixed[d] = lanes[d]


def _mix(mixed: Any, weights: Any, count: Any, value: Any, stride: Any, value_dim: Any) -> Any:
    """mixed = Σⱼ wⱼ·vⱼ, written to the address ``mixed``."""
    whole = value_dim // LANES * LANES
    for d in range(0, whole, LANES):
        offset = d * FLOAT_BYTES
        lanes = _floats(mixed + offset, LANES)
        _mix_lanes(lanes, weights, count, value + offset, stride, LANES)
    if whole < value_dim:
        offset, rest = whole * FLOAT_BYTES, value_dim - whole
        lanes = _floats(mixed + offset, rest)
        _mix_lanes(lanes, weights, count, value + offset, stride, rest)


def _chunk_count(step: Any) -> Any:
    return (step.keys + CHUNK - 1) // CHUNK


def _group_rows(step: Any) -> Any:
    """How many query rows share one key/value head."""
    return step.heads // step.kv_heads * step.queries


def _partial(step: Any, task: Any, row: Any) -> Any:
    """The address where a task leaves a row's mixed values, largest score and total."""
    index = task * _group_rows(step) + row
    return step.partials + index * (step.value_dim + 2) * FLOAT_BYTES


def _attend_to_chunk(step: Any, task: Any, thread: Any) -> Any:
    """Every query row of one key/value head, over one chunk of its keys."""
    chunks, rows = _chunk_count(step), _group_rows(step)
    batch, kv_head, first = (
        task // chunks // step.kv_heads,
        task // chunks % step.kv_heads,
        task % chunks * CHUNK,
    )
    count = min(CHUNK, step.keys - first)
    key_start = batch * step.key_batch + kv_head * step.key_head + first * step.key_row
    value_start = batch * step.value_batch + kv_head * step.value_head + first * step.value_row
    key, key_stride = step.key + key_start * FLOAT_BYTES, step.key_row * FLOAT_BYTES
    value, value_stride = step.value + value_start * FLOAT_BYTES, step.value_row * FLOAT_BYTES
    scratch = step.scores + thread * rows * CHUNK * FLOAT_BYTES
    for row in range(rows):
        head = kv_head * (step.heads // step.kv_heads) + row // step.queries
        query_start = (
            batch * step.query_batch + head * step.query_head + row % step.queries * step.query_row
        )
        scores = _floats(scratch + row * CHUNK * FLOAT_BYTES, CHUNK)
        _score(scores, count, step.query + query_start * FLOAT_BYTES, key, key_stride, step.key_dim)
        _scale_and_cap(scores, count, step.scale, step.softcap)
        partial = _partial(step, task, row)
        statistics = _floats(partial + step.value_dim * FLOAT_BYTES, 2)
        statistics[0] = _largest(scores, count)
        statistics[1] = _exponentiate(scores, count, statistics[0])
    for row in range(rows):
        weights = _floats(scratch + row * CHUNK * FLOAT_BYTES, CHUNK)
        _mix(_partial(step, task, row), weights, count, value, value_stride, step.value_dim)


def _merge_row(step: Any, index: Any) -> Any:
    """One row of the output from what its chunks' tasks left, and the head's sink."""
    chunks, rows, value_dim = _chunk_count(step), _group_rows(step), step.value_dim
    first_task, row = index // rows * chunks, index % rows
    largest = MINUS_INFINITY
    if step.sinks != 0:
        sink = _floats(step.sinks, step.heads)[index // step.queries % step.heads]
        largest = sink
    for task in range(first_task, first_task + chunks):
        chunk_largest = _floats(_partial(step, task, row), value_dim + 2)[value_dim]
        largest = chunk_largest if chunk_largest > largest else largest
    output = _floats(step.output + index * value_dim * FLOAT_BYTES, value_dim)
    for d in range(value_dim):
        output[d] = ZERO
    total = _exp(sink - largest) if step.sinks != 0 else ZERO
    for task in range(first_task, first_task + chunks):
        partial = _floats(_partial(step, task, row), value_dim + 2)
        weight = _exp(partial[value_dim] - largest)
        total += weight * partial[value_dim + 1]
        for d in range(value_dim):
            output[d] += weight * partial[d]
    for d in range(value_dim):
        output[d] /= total


def _attend(steps: Any) -> None:
    """What each thread does: its share of the tasks."""
    step = _carray(steps, 1)[0]
    thread, threads = np.int64(_thread()), np.int64(_thread_count())
    tasks = step.batch * step.kv_heads * _chunk_count(step)
    for task in range(tasks * thread // threads, tasks * (thread + 1) // threads):
        _attend_to_chunk(step, task, thread)


def _merge(steps: Any) -> None:
    """What one thread does afterwards, in 1/250 of the work: not worth another wait for all."""
    step = _carray(steps, 1)[0]
    for index in range(step.batch * step.heads * step.queries):
        _merge_row(step, index)


# Compiling. ``contract`` (fused multiply-add) suits all; sums may be reordered except where the
# order is the method; only ``_largest`` may disregard NaN.
AS_WRITTEN = {"contract"}
REORDERED = {"contract", "reassoc", "nsz", "arcp"}
DISREGARDING_NAN = {"nnan", "nsz"}
PARTS: tuple[tuple[Callable[..., Any], set[str]], ...] = (
    *((part, AS_WRITTEN) for part in (_exp_parts, _exp, _tanh)),
    (_largest, DISREGARDING_NAN),
    *((part, REORDERED) for part in (_floats, _add_scores, _score, _scale_and_cap, _exponentiate)),
    *((part, REORDERED) for part in (_mix_lanes, _mix, _chunk_count, _group_rows, _partial)),
    *((part, REORDERED) for part in (_attend_to_chunk, _merge_row)),
)
PART_OPTIONS = {
    "error_model": "numpy",  # no check for division by zero
    "forceinline": True,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
OPENMP_NAMES = {
    "_thread": "omp_get_thread_num",
    "_thread_count": "omp_get_num_threads",
}


class _Kernel(NamedTuple):
    parallel: Callable[..., None]
    attend_address: int
    merge: Callable[..., None]


@functools.cache
def _kernel() -> _Kernel | None:
    """The compiled kernel; None where there is no numba, or torch's threads are not OpenMP's."""
    try:
        import numba
    except ImportError:
        return None
    openmp = ctypes.CDLL(torch._C.__file__)  # finds the OpenMP library that torch is linked to
    if not all(hasattr(openmp, name) for name in ("GOMP_parallel", *OPENMP_NAMES.values())):
        return None
    parallel = openmp.GOMP_parallel
    parallel.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
    parallel.restype = None
    try:
        parts = _compiled_parts(openmp)
        attend, merge = _c_function(_attend, parts), _c_function(_merge, parts)
    except numba.core.errors.NumbaError:
        return None
    merge_prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    return _Kernel(parallel, attend.address, merge_prototype(merge.address))


def _c_function(function: Callable[..., Any], parts: dict[str, Any]) -> Any:
    """A function of a step as a C function, out of numba's cache if it is there."""
    import numba

    rebound = _rebound(function, parts)
    signature = numba.void(numba.types.CPointer(numba.from_dtype(np.dtype(_Step))))
    try:
        return numba.cfunc(signature, error_model="numpy", cache=True)(rebound)
    except RuntimeError:  # numba found no folder that it may write to
        return numba.cfunc(signature, error_model="numpy")(rebound)


def _compiled_parts(openmp: ctypes.CDLL) -> dict[str, Any]:
    """This module's names as the kernel sees them: its functions compiled, numba's in place."""
    import numba

    parts = globals() | _numba_parts() | _openmp_parts(openmp)
    for part, fastmath in PARTS:
        compile_part = numba.njit(fastmath=fastmath, **PART_OPTIONS)
        parts[part.__name__] = compile_part(_rebound(part, parts))
    return parts


def _rebound(function: Callable[..., Any], names: dict[str, Any]) -> Callable[..., Any]:
    """The same function without wrappers (a checker of types), its global names looked up here."""
    return FunctionType(inspect.unwrap(function).__code__, names, function.__name__)


def _openmp_parts(openmp: ctypes.CDLL) -> dict[str, Any]:
    """OpenMP's functions under names of ours, so that no other OpenMP in the process answers."""
    from llvmlite import binding  # type: ignore[import-untyped]
    from numba import types

    for ours, theirs in OPENMP_NAMES.items():
        address = ctypes.cast(getattr(openmp, theirs), ctypes.c_void_p).value
        binding.add_symbol(f"clearhead{ours}", address)
    signature = types.int32()
    return {ours: types.ExternalFunction(f"clearhead{ours}", signature) for ours in OPENMP_NAMES}


def _numba_parts() -> dict[str, Any]:
    """Memory at an address, and LANES floats on the stack."""
    from llvmlite import ir
    from numba import carray, types
    from numba.core import cgutils
    from numba.extending import intrinsic

    def pointer(_context: Any, _address: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], context.get_value_type(types.voidptr))

        return types.voidptr(types.int64), generate

    def lanes_on_stack(_context: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
            lanes = cgutils.alloca_once(builder, ir.ArrayType(ir.FloatType(), LANES))
            return builder.bitcast(lanes, context.get_value_type(types.voidptr))

        return types.voidptr(), generate

    return {
        "_carray": carray,
        "_pointer": intrinsic(pointer),
        "_lanes_on_stack": intrinsic(lanes_on_stack),
    }
