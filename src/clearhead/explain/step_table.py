"""The textbook's table of one query: Word, k, v, score, score/√d, softmax, softmax·v, sum."""

from __future__ import annotations

import math
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from clearhead.attention.steps import AttentionSteps
from clearhead.errors import InputError, ShapeError

Vector = tuple[float, ...]


@dataclass(frozen=True)
class StepRow:
    """What one word (key) contributes to the query's result."""

    word: str
    key: Vector
    value: Vector
    score: float
    scaled: float
    masked: bool
    weight: float
    weighted: Vector


@dataclass(frozen=True)
class StepTable:
    """Every step from one query to its result."""

    title: str
    word: str  # the one that asks
    query: Vector
    rows: tuple[StepRow, ...]
    scale: float
    output: Vector

    @property
    def scale_name(self) -> str:
        """How the scaled score is headed: "score/8" for 1/√64; "score" where nothing is scaled."""
        if self.scale == 1.0:
            return "score"
        divisor = 1 / self.scale
        whole = math.isclose(divisor, round(divisor), rel_tol=1e-6)
        return f"score/{round(divisor) if whole else format(divisor, '.3g')}"


def step_table(
    words: list[str],
    query: Float[Tensor, "query key_dim"],
    key: Float[Tensor, "key key_dim"],
    steps: AttentionSteps,
    *,
    row: int,
    asking: str,
    title: str,
) -> StepTable:
    """The table of query ``row`` from the steps of a single head, (query, key_dim) tensors."""
    if len(words) != key.shape[0]:
        raise ShapeError(
            f"one word for each of the {key.shape[0]} keys is wanted; got {len(words)}."
        )
    if not 0 <= row < query.shape[0]:
        raise InputError(f"row {row}: there are queries 0 … {query.shape[0] - 1}.")
    rows = tuple(
        StepRow(
            word=word,
            key=_vector(key[column]),
            value=_vector(steps.value[column]),
            score=float(steps.scores[row, column]),
            scaled=float(steps.scaled[row, column]),
            masked=math.isinf(float(steps.masked[row, column])),
            weight=float(steps.weights[row, column]),
            weighted=_vector(steps.weighted[row, column]),
        )
        for column, word in enumerate(words)
    )
    return StepTable(
        title, asking, _vector(query[row]), rows, steps.scale, _vector(steps.output[row])
    )


def _vector(numbers: Tensor) -> Vector:
    return tuple(numbers.tolist())
