"""The step table of one query: word, k, v, score, score/√d, softmax, softmax·v, sum.

The steps have the order of the computation: score, scale, softcap, bias, mask, softmax. A step that
the model does not have is ``None``. Vectors are complete here; views shorten them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from jaxtyping import Float
from torch import Tensor

from clearhead.attention.steps import AttentionSteps
from clearhead.errors import InputError, ShapeError
from clearhead.explain.head_outputs import HeadOutputs
from clearhead.trace.proof import LayerProof

Vector = tuple[float, ...]
Queries: TypeAlias = Callable[[], "tuple[StepTable, ...]"]


@dataclass(frozen=True)
class StepRow:
    """The steps of one key word, and its contribution to the query's result."""

    word: str
    key: Vector
    value: Vector  # empty where values were not kept
    score: float
    scaled: float
    masked: str  # the reason: "future", "padding", "window", "mask"; "" if it is not masked
    weight: float
    weighted: Vector
    capped: float | None = None
    bias: float | None = None


@dataclass(frozen=True)
class Sink:
    """A learned score that takes a share of the softmax and contributes no value."""

    score: float
    weight: float


@dataclass(frozen=True)
class StepTable:
    """Every step from one query to its result."""

    title: str
    word: str  # the query's word
    query: Vector
    rows: tuple[StepRow, ...]
    scale: float
    output: Vector  # empty where values were not kept
    head: str = ""  # "L16H5"; "" in a worked example
    softcap: float | None = None
    sink: Sink | None = None
    outputs: HeadOutputs | None = None  # of all heads of the layer, through W_O to Z
    proof: LayerProof | None = None
    notes: tuple[str, ...] = ()
    model: str = ""  # the name of the model
    queries: Queries | None = None  # the tables of every query, this one among them

    def __repr__(self) -> str:
        return (
            f"StepTable({self.title!r}, word={self.word!r}, {len(self.rows)} rows, "
            f"scale={self.scale:.4g})"
        )

    @property
    def scale_name(self) -> str:
        """The title of the scaled scores: "score/8" for 1/√64; "score" if nothing is scaled."""
        if self.scale == 1.0:
            return "score"
        divisor = 1 / self.scale
        whole = math.isclose(divisor, round(divisor), rel_tol=1e-6)
        return f"score/{round(divisor) if whole else format(divisor, '.3g')}"

    @property
    def has_bias(self) -> bool:
        """True if a bias is added to the scores."""
        return any(row.bias is not None for row in self.rows)


def step_table(
    words: list[str],
    query: Float[Tensor, "query key_dim"],
    key: Float[Tensor, "key key_dim"],
    steps: AttentionSteps,
    *,
    row: int,
    query_word: str,
    title: str,
) -> StepTable:
    """Make the table of query ``row`` from the steps of a single head, (query, key_dim) tensors."""
    if len(words) != key.shape[0]:
        raise ShapeError(
            f"one word for each of the {key.shape[0]} keys is wanted; got {len(words)}."
        )
    if not 0 <= row < query.shape[0]:
        raise InputError(f"row {row}: there are queries 0 … {query.shape[0] - 1}.")
    rows = tuple(
        StepRow(
            word=word,
            key=vector(key[column]),
            value=vector(steps.value[column]),
            score=float(steps.scores[row, column]),
            scaled=float(steps.scaled[row, column]),
            masked="mask" if math.isinf(float(steps.masked[row, column])) else "",
            weight=float(steps.weights[row, column]),
            weighted=vector(steps.weighted[row, column]),
            capped=None if steps.capped is None else float(steps.capped[row, column]),
            bias=_bias(steps, row, column),
        )
        for column, word in enumerate(words)
    )
    return StepTable(
        title, query_word, vector(query[row]), rows, steps.scale, vector(steps.output[row])
    )


def vector(numbers: Tensor) -> Vector:
    """Convert a vector to plain numbers."""
    return tuple(numbers.tolist())


def _bias(steps: AttentionSteps, row: int, column: int) -> float | None:
    if steps.biased is None:
        return None
    before = steps.scaled if steps.capped is None else steps.capped
    return float(steps.biased[row, column] - before[row, column])
