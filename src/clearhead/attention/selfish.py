"""Attention in its smallest form: one query, and the keys are the values as well.

    scores  = keys · query          how well does each key fit the query?
    weights = softmax(scores)       as shares that sum to 1
    result  = Σ weights_i · key_i   the keys, mixed by their shares

There is no scale (or: scale 1), and the keys serve as values: *selfish* attention. The same three
lines work for one query and for a whole batch at once.
"""

from __future__ import annotations

from typing import Any, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from clearhead.errors import InputError, ShapeError
from clearhead.tensors import dense_tensor


@overload
def selfish_attention(batch_keys_embedding: Tensor, batch_query_embedding: Tensor) -> Tensor: ...
@overload
def selfish_attention(
    batch_keys_embedding: NDArray[Any], batch_query_embedding: NDArray[Any]
) -> NDArray[Any]: ...
def selfish_attention(batch_keys_embedding: Any, batch_query_embedding: Any) -> Any:
    """Mix the keys by how well they fit the query.

    Shapes: (key, model), (model) → (model), and in parallel over a batch
    (batch, key, model), (batch, model) → (batch, model). NumPy in, NumPy out; torch in, torch out.

    Args:
        batch_keys_embedding: the keys, which are the values as well.
        batch_query_embedding: one query for each set of keys.

    Returns:
        Σ softmax(keys · query)_i · key_i for each query.

    Raises:
        ShapeError: if the axes do not fit.
        InputError: if an argument is neither a tensor nor an array of real numbers.

    >>> import numpy as np
    >>> keys = np.array([[1, 0, 1], [1, 0, -1], [-1, 1, 0], [-1, 0, 1]])
    >>> selfish_attention(keys, np.array([2, 0, -1])).round(2).tolist()
    [0.98, 0.01, -0.75]
    """
    keys, query = _tensor("keys", batch_keys_embedding), _tensor("query", batch_query_embedding)
    _check(keys, query)
    dtype = torch.promote_types(keys.dtype, query.dtype)
    keys, query = keys.to(dtype), query.to(dtype)

    scores = (keys @ query.unsqueeze(-1)).squeeze(-1)  # (batch, key)
    weights = torch.softmax(scores, dim=-1)  # (batch, key)
    result = (weights.unsqueeze(-2) @ keys).squeeze(-2)  # (batch, model)

    return result if isinstance(batch_keys_embedding, Tensor) else result.detach().numpy()


def _tensor(name: str, given: Any) -> Tensor:
    """The argument as a floating-point tensor; whole numbers become the default float type."""
    if isinstance(given, Tensor):
        if dense_tensor(name, given).is_meta or given.is_quantized:
            raise InputError(f"{name} must hold numbers; got a meta or quantised tensor.")
        if not given.is_complex():
            return given if given.is_floating_point() else given.to(torch.get_default_dtype())
    elif isinstance(given, np.ndarray) and given.dtype.kind in "fiub":
        known = given.dtype in (np.float16, np.float32, np.float64)
        return torch.from_numpy(np.array(given, given.dtype if known else np.float64, order="C"))
    what = f"{given.dtype} numbers" if hasattr(given, "dtype") else type(given).__name__
    raise InputError(
        f"{name} must be a NumPy array or a torch tensor of real numbers; got {what}.",
        hint="wrap lists in numpy.array(…).",
    )


def _check(keys: Tensor, query: Tensor) -> None:
    if keys.ndim not in (2, 3) or query.ndim != keys.ndim - 1:
        raise ShapeError(
            "wanted keys (key, model) with query (model), or keys (batch, key, model) with query "
            f"(batch, model); got keys {tuple(keys.shape)} with query {tuple(query.shape)}."
        )
    if keys.shape[-1] != query.shape[-1] or keys.shape[:-2] != query.shape[:-1]:
        raise ShapeError(
            "keys and query must have the same width and the same batch; "
            f"got keys {tuple(keys.shape)} with query {tuple(query.shape)}."
        )
    if keys.shape[-2] == 0:
        raise ShapeError(f"there must be at least one key to mix; got keys {tuple(keys.shape)}.")
    for name, tensor in (("keys", keys), ("query", query)):
        if not tensor.isfinite().all():
            raise InputError(f"{name} holds NaN or ±inf; every number must be finite.")
