"""Step tables of one's own numbers: keys and a query, or the result of ``attention_steps``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from clearhead.arguments import shown
from clearhead.attention.steps import AttentionSteps, attention_steps
from clearhead.errors import InputError, ShapeError
from clearhead.explain.finite import require_finite
from clearhead.explain.step_table import StepTable, step_table

Real: TypeAlias = int | float
Numbers: TypeAlias = Tensor | np.ndarray | Sequence[Real] | Sequence[Sequence[Real]]


def table_of_keys(keys: object, query: object, words: Sequence[str] | None = None) -> StepTable:
    """One query against some keys, which are the values as well; nothing is scaled.

    >>> [round(row.weight, 2) for row in table_of_keys([[1, 0], [0, 1]], [2, 1]).rows]
    [0.73, 0.27]
    """
    if query is None:
        raise InputError("keys need a query: ch.steps(keys, query).")
    key = key_matrix(keys)
    asked = _numbers("query", query)
    if asked.ndim != 1 or asked.shape[0] != key.shape[1]:
        raise ShapeError(
            f"query must be one vector of {key.shape[1]} numbers, as the keys; got shape "
            f"{tuple(asked.shape)}."
        )
    steps = attention_steps(asked[None], key, key, scale=1.0)
    names = key_words(words, len(key))
    return step_table(
        names, asked[None], key, steps, row=0, query_word="query", title="one query and its keys"
    )


def table_of_steps(
    steps: AttentionSteps,
    words: Sequence[str] | None = None,
    head: str | None = None,
    word: int | str | None = None,
) -> StepTable:
    """The table of one query of ``attention_steps``; of several heads the one that is named."""
    queries, keys = steps.weights.shape[-2:]
    names = key_words(words, keys)
    query_names = names if queries == keys else [f"query {row}" for row in range(queries)]
    row = _row(query_names, word)
    place, name = _head(steps, head)
    single = _only(steps, place)
    require_finite(single.weights, "attention_steps", "weights")
    title = f"{name}: where “{query_names[row]}” looks".removeprefix(": ")
    table = step_table(
        names, single.query, single.key, single, row=row, query_word=query_names[row], title=title
    )
    return replace(table, head=name)


def key_matrix(keys: object) -> Tensor:
    """Keys as a matrix of numbers, a row for each; anything else is refused."""
    return _matrix("keys", keys)


def key_words(words: Sequence[str] | None, count: int) -> list[str]:
    """The words of the keys, checked; numbered ones unless given."""
    if words is None:
        return [f"key {number}" for number in range(count)]
    if isinstance(words, str) or not all(isinstance(one, str) for one in words):
        raise InputError(f"words is a list of texts, one for each key; got {shown(words)}.")
    if len(words) != count:
        raise ShapeError(f"one word for each of the {count} keys is wanted; got {len(words)}.")
    return list(words)


def _row(names: list[str], word: int | str | None) -> int:
    if word is None:
        return len(names) - 1
    if isinstance(word, str):
        if word not in names:
            raise InputError(f"word {word!r}: there is none; the queries are {', '.join(names)}.")
        return names.index(word)
    if isinstance(word, bool) or not 0 <= word < len(names):
        raise InputError(f"word {shown(word)}: there are queries 0 … {len(names) - 1}.")
    return word


def _head(steps: AttentionSteps, head: str | None) -> tuple[int | None, str]:
    """The number of the head among (head, query, key) and its name; None without a head axis."""
    shape = steps.weights.shape
    if len(shape) == 2:
        if head is not None:
            raise InputError(f"head {head!r}: these steps have one head and no names.")
        return None, ""
    heads = shape[-3]
    if any(size != 1 for size in shape[:-3]):
        raise ShapeError(
            f"steps of one row of a batch are wanted; got weights of shape {tuple(shape)}.",
            hint="attention_steps(query[0], key[0], value[0]) is the first row.",
        )
    match = re.fullmatch(r"H(\d+)", "H0" if head is None else head)
    if match is None or int(match[1]) >= heads:
        raise InputError(f"head {head!r}: the heads are H0 … H{heads - 1}.")
    return int(match[1]), match[0]


def _only(steps: AttentionSteps, place: int | None) -> AttentionSteps:
    """The same steps of one head alone."""
    if place is None:
        return steps

    def one(numbers: Tensor) -> Tensor:
        return numbers.reshape(-1, *numbers.shape[-2:])[place]

    tensors = {
        name: one(found) for name, found in vars(steps).items()
        if isinstance(found, Tensor) and name != "weighted"
    }  # fmt: skip
    return AttentionSteps(
        **{"capped": None, "biased": None, **tensors},  # type: ignore[arg-type]
        scale=steps.scale,
    )


def _matrix(name: str, given: object) -> Tensor:
    found = _numbers(name, given)
    if found.ndim != 2 or found.numel() == 0:
        raise ShapeError(
            f"{name} must be a list of vectors, all of the same length; got shape "
            f"{tuple(found.shape)}."
        )
    return found


def _numbers(name: str, given: object) -> Tensor:
    """Lists, NumPy arrays and tensors as float64; what is no number is refused."""
    try:
        if isinstance(given, Tensor):
            found = _plain(given).detach().cpu().double()
        elif isinstance(given, np.ndarray | list | tuple):
            array = np.asarray(given)
            if array.dtype.kind not in "iuf":
                raise ValueError
            found = torch.from_numpy(array.astype(np.float64))
        else:
            raise TypeError
    except (ValueError, TypeError, RuntimeError, NotImplementedError):
        raise InputError(f"{name} must be numbers; got {shown(given)}.") from None
    if not bool(found.isfinite().all()):
        raise InputError(f"{name} must be finite numbers; got {shown(given)}.")
    return found


def _plain(tensor: Tensor) -> Tensor:
    """A tensor of real numbers, one beside the other in memory; another one is refused."""
    if tensor.layout is not torch.strided or tensor.is_nested or tensor.is_complex():
        raise TypeError
    if tensor.dtype is torch.bool:
        raise TypeError
    return tensor
