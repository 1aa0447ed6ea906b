"""Scores, softmax and weighted sum as three operations of torch: for short texts.

As long as the scores stay in the processor's cache, the three operations one by one are quicker
than torch's flash kernel. ms for 8 heads of width 64 (2 cores, AVX-512; the rows take turns call by
call: repeated alone each is quicker, SDPA most of all):

    tokens                              64     96    128    192    256
    F.scaled_dot_product_attention    0.15   0.30   0.43   0.81   1.18
    three products                    0.15   0.21   0.31   0.64   1.11

From there on ``tiles.py`` takes less than either, where numba can compile it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from clearhead.attention.flash import plain_flash
from clearhead.attention.soundness import HIDES_NAN, short_is_finite
from clearhead.kernels.plain_tensors import is_differentiated, is_float, is_recorded, is_transformed
from clearhead.kernels.scratch import SCRATCH

FEW_KEYS = 192
SCORES_AT_ONCE = 1 << 20  # 4 MB


def three_products_apply(query: Tensor, key: Tensor, causal: bool) -> bool:
    """True if the three products can compute a call without a gradient or option, and are quickest.

    The batch has no say in it, and a single head is left to flash, because torch multiplies one
    matrix in another order than several: a row's result must not depend on its neighbours.
    """
    if query.dtype is not torch.float32 or query.device.type != "cpu" or key.shape[1] == 1:
        return False
    if is_transformed() or is_recorded():  # torch transforms and records no writes to given memory
        return False
    queries, keys = query.shape[2], key.shape[2]
    # A query that sees nothing has no softmax.
    return keys <= FEW_KEYS and (queries <= keys or not causal)


def three_products(
    query: Float[Tensor, "batch head query key_dim"],
    key: Float[Tensor, "batch kv_head key key_dim"],
    value: Float[Tensor, "batch kv_head key value_dim"],
    *,
    scale: float,
    causal: bool = False,
) -> Float[Tensor, "batch head query value_dim"]:
    """softmax(scale · q · kᵀ, the future hidden if wanted) · v, without a gradient."""
    batch, heads, queries, key_dim = query.shape
    kv_heads, keys, value_dim = value.shape[1:]
    # The queries of all heads that share a key/value head are so many rows of one matrix.
    matrices, grouped = batch * kv_heads, heads // kv_heads * queries
    rows = query.reshape(matrices, grouped, key_dim)
    columns = key.reshape(matrices, keys, key_dim).transpose(1, 2)
    values = value.reshape(matrices, keys, value_dim)
    hidden = _future(queries, keys, heads // kv_heads) if causal else None
    if matrices * grouped * keys <= SCORES_AT_ONCE:
        weights = _weights(rows, columns, hidden, scale, (matrices, grouped, keys))
        mixed = torch.bmm(weights, values)
    else:
        mixed = query.new_empty(matrices, grouped, value_dim)
        for some, run in _blocks(matrices, grouped, keys):
            seen = None if hidden is None else hidden[run]
            shape = (some.stop - some.start, run.stop - run.start, keys)
            weights = _weights(rows[some, run], columns[some], seen, scale, shape)
            mixed[some, run] = torch.bmm(weights, values[some])
    return mixed.view(batch, heads, queries, value_dim)


def short_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    scale: float | None,
    causal: bool,
    trained: Callable[[Tensor, Tensor, Tensor, bool, float], Tensor] = plain_flash,
) -> Tensor | None:
    """The lean way through for a short text without any option but ``causal``.

    128 tokens take the products about 250 µs, and checks that explain what is wrong 20 more. With
    a gradient it is ``trained(query, key, value, causal, scale)``: the products would keep all
    weights for it. None if this is another case or the result is not finite: the long way then
    says why.
    """
    shape: tuple[int, ...] = getattr(query, "shape", ())
    if len(shape) != 4 or not 1 < shape[2] <= FEW_KEYS or shape[1] == 1 or shape[3] == 0:
        return None
    if not shape == getattr(key, "shape", ()) == getattr(value, "shape", ()):
        return None
    if not (is_float(query) and is_float(key) and is_float(value)) or is_transformed():
        return None
    if is_recorded():
        return None
    scale = shape[3] ** -0.5 if scale is None else scale
    if is_differentiated(query, key, value):
        if shape[2] < HIDES_NAN or scale <= 0:
            return None
        output = trained(query, key, value, causal, scale)
        return output if short_is_finite(output.detach()) else None
    output = three_products(query, key, value, scale=scale, causal=causal)
    return output if short_is_finite(output) else None


def _weights(
    rows: Tensor,
    columns: Tensor,
    hidden: Tensor | None,
    scale: float,
    shape: tuple[int, int, int],
) -> Tensor:
    """softmax(scale · rows · columns + hidden), in memory that the next call uses again."""
    scores = SCRATCH.shaped(shape)
    if hidden is None:
        torch.baddbmm(scores, rows, columns, beta=0, alpha=scale, out=scores)
    else:
        torch.baddbmm(hidden, rows, columns, alpha=scale, out=scores)
    return torch.softmax(scores, -1, out=scores)


def _blocks(matrices: int, rows: int, keys: int) -> list[tuple[slice, slice]]:
    """Runs of matrices and of their rows whose scores are few enough to stay in the cache.

    Never a single matrix, and runs of rows that are the same whatever the number of matrices.
    """
    fewest = max(2, torch.get_num_threads())
    length = max(1, min(rows, SCORES_AT_ONCE // (fewest * keys)))
    several = max(fewest, SCORES_AT_ONCE // (length * keys))
    count = max(1, matrices // several)
    return [
        (
            slice(matrices * n // count, matrices * (n + 1) // count),
            slice(start, min(rows, start + length)),
        )
        for n in range(count)
        for start in range(0, rows, length)
    ]


@functools.lru_cache(maxsize=8)
def _future(queries: int, keys: int, group: int) -> Float[Tensor, "grouped_query key"]:
    """−∞ on the keys that come after each query, aligned to the end; for each head of a group."""
    hidden = torch.full((queries, keys), -torch.inf).triu(keys - queries + 1)
    return hidden.repeat(group, 1)
