"""The worked examples of the teaching material, with numbers that fit on a page.

``selfish``: one query against four keys. ``batch``: three of those at once, in parallel.
``action``: self-attention over "Action gets results", q, k, v = W·(c + p) with sinusoidal
positions, for every word.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from clearhead.attention.sinusoidal import sinusoidal_positions
from clearhead.attention.steps import attention_steps
from clearhead.errors import InputError
from clearhead.explain.step_table import StepTable, step_table

BATCH_KEYS = (
    ((1, 0, 1), (1, 0, -1), (-1, 1, 0), (-1, 0, 1)),
    ((-2, -1, 0), (1, 0, -1), (-1, 1, 0), (-1, -3, 1)),
    ((2, 3, 9), (1, 4, 3), (-1, 0, 5), (-1, -2, 0)),
)
BATCH_QUERIES = ((2, 0, -1), (-2, 1, -1), (1, 1, 1))
ACTION_WORDS = ("Action", "gets", "results")


def worked_example(name: str = "selfish") -> list[StepTable]:
    """Return the tables of one worked example: "selfish", "batch" or "action".

    >>> [round(row.weight, 2) for row in worked_example("selfish")[0].rows]
    [0.12, 0.87, 0.01, 0.0]
    """
    if name not in EXAMPLES:
        raise InputError(f"there is no worked example {name!r}; there are {', '.join(EXAMPLES)}.")
    tables = EXAMPLES[name]()
    return [replace(table, queries=lambda: tuple(tables)) for table in tables]


def _selfish() -> list[StepTable]:
    return [_selfish_table(0, "one query and four keys")]


def _batch() -> list[StepTable]:
    return [
        _selfish_table(row, f"row {row} of a batch of {len(BATCH_KEYS)}")
        for row in range(len(BATCH_KEYS))
    ]


def _selfish_table(row: int, title: str) -> StepTable:
    keys = torch.tensor(BATCH_KEYS[row], dtype=torch.float64)
    query = torch.tensor([BATCH_QUERIES[row]], dtype=torch.float64)
    steps = attention_steps(query, keys, keys, scale=1.0)
    words = [f"key {number}" for number in range(len(keys))]
    return step_table(words, query, keys, steps, row=0, query_word="query", title=title)


def _action() -> list[StepTable]:
    """Four numbers a word, small whole weights: everything can be checked with a pencil."""
    embedding = torch.tensor([[1.0, 0, 1, 0], [0, 2, 0, 1], [1, 1, 0, 2]], dtype=torch.float64)
    states = embedding + sinusoidal_positions(len(ACTION_WORDS), 4).double()  # c + p
    to_query = _matrix("1 0 0 1 / 0 1 1 0 / 1 0 1 0 / 0 1 0 1")
    to_key = _matrix("0 1 0 1 / 1 0 1 0 / 0 0 1 1 / 1 1 0 0")
    to_value = _matrix("1 0 0 0 / 0 2 0 0 / 0 0 1 0 / 1 0 0 2")
    query, key, value = states @ to_query, states @ to_key, states @ to_value
    steps = attention_steps(query, key, value)
    words = list(ACTION_WORDS)
    return [
        step_table(
            words, query, key, steps, row=row, query_word=word, title=f"where {word!r} looks"
        )
        for row, word in enumerate(words)
    ]


def _matrix(text: str) -> Tensor:
    rows = [[float(number) for number in row.split()] for row in text.split("/")]
    return torch.tensor(rows, dtype=torch.float64)


EXAMPLES: dict[str, Callable[[], list[StepTable]]] = {
    "selfish": _selfish,
    "batch": _batch,
    "action": _action,
}
