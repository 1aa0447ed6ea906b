"""Batches of sentences of similar length, always padded to the same width.

A sentence is padded to the next multiple of 8 above its own length, whatever the other sentences
are. So its numbers, and all counts, do not depend on how sentences are batched. (Above, not equal:
without any padding some models would take another kernel.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from clearhead.explain.roles.prepared import Prepared
from clearhead.explain.roles.properties import Level

STEP = 8
BATCH_TOKENS = 1024  # of one forward, unless a single sentence has more


def padded_width(tokens: int) -> int:
    """Return the padded length of a sentence with so many tokens."""
    return (tokens // STEP + 1) * STEP


def batches(sentences: Sequence[Prepared], tokens: int = BATCH_TOKENS) -> Iterator[Batch]:
    """Yield the sentences in batches of one width each, short ones first."""
    ordered = sorted(sentences, key=lambda one: padded_width(len(one.ids)))
    for width, group in groupby(ordered, key=lambda one: padded_width(len(one.ids))):
        alike = list(group)
        size = max(1, tokens // width)
        for first in range(0, len(alike), size):
            yield Batch(alike[first : first + size], width)


@dataclass(frozen=True)
class Edges:
    """All targets of a batch at one level, property by property; the second half counts on."""

    sentence: Int[Tensor, " edge"]
    property: Int[Tensor, " edge"]
    query: Int[Tensor, " edge"]
    key: Int[Tensor, " edge"]


class Batch:
    """Sentences of one width, as tensors."""

    def __init__(self, sentences: list[Prepared], width: int) -> None:
        self.sentences, self.width = sentences, width

    @property
    def lengths(self) -> Int[Tensor, " batch"]:
        """The number of real tokens of each row."""
        return torch.tensor([len(one.ids) for one in self.sentences])

    def ids(self, pad: int = 0) -> Int[Tensor, "batch query"]:
        """Return the ids, padded at the end."""
        rows = [one.ids + [pad] * (self.width - len(one.ids)) for one in self.sentences]
        return torch.tensor(rows)

    def owners(self) -> Float[Tensor, "batch token unit"]:
        """Return 1 where a token belongs to a unit; there are never more units than tokens."""
        belongs = torch.zeros(len(self.sentences), self.width, self.width)
        for row, one in enumerate(self.sentences):
            belongs[row, torch.arange(len(one.ids)), torch.from_numpy(one.owners)] = 1.0
        return belongs

    def sinks(self, level: Level) -> Bool[Tensor, "batch position"]:
        """True for attention sinks: the first token and special tokens."""
        return self._rows([one.sinks[level] for one in self.sentences], torch.bool)

    def word_kinds(self, level: Level) -> Int[Tensor, "batch position"]:
        """Return the word kind of each position, as a number."""
        return self._rows([one.word_kinds[level] for one in self.sentences], torch.int64)

    def edges(self, level: Level, properties: int) -> Edges:
        """Return all targets; to numbers of the second half, ``properties`` is added."""
        parts = [one.edges[level] for one in self.sentences]
        rows = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        halves = np.repeat([one.half for one in self.sentences], [len(part) for part in parts])
        prop, query, key = np.concatenate(parts).T if parts else np.zeros((3, 0), dtype=np.int64)
        prop = prop + halves * properties
        order = np.argsort(prop.astype(np.int32), kind="stable")
        return Edges(*(torch.from_numpy(one[order]) for one in (rows, prop, query, key)))

    def _rows(self, parts: list[np.ndarray], dtype: torch.dtype) -> Tensor:
        rows = torch.zeros(len(parts), self.width, dtype=dtype)
        for row, part in enumerate(parts):
            rows[row, : len(part)] = torch.from_numpy(part)
        return rows
