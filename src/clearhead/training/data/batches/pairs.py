"""Batches of pairs of about the same length, so that there is little padding.

Every pass shuffles the pairs, sorts runs of them by length, cuts the runs into batches by their
number of tokens, and shuffles the batches. Passes may have different numbers of batches: each goes
to its own end, so every pair is learned once in it. Batch number n depends only on the seed and n.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import TypeAlias

import torch
from torch import Tensor

from clearhead.errors import InputError
from clearhead.training.data.batches.batch import IGNORED, PairBatch
from clearhead.training.random_seed import generator_for

Pair: TypeAlias = tuple[Sequence[int], Sequence[int]]
SORTED_TOGETHER = 100  # batches: enough for even lengths, few enough to stay well mixed


class PairBatches:
    """Batches in which source and target together have at most ``batch_tokens`` ids, padding too.

    ``start`` is the id that every output begins with.
    """

    def __init__(
        self, pairs: Sequence[Pair], *, batch_tokens: int, start: int, pad: int, seed: int
    ) -> None:
        if not pairs:
            raise InputError("there are no pairs to learn from.")
        self._pairs, self._start, self._pad, self._seed = pairs, start, pad, seed
        self._sizes = [_size(pair) for pair in pairs]
        if max(map(sum, self._sizes)) > batch_tokens:
            raise InputError(
                f"the longest pair has {max(map(sum, self._sizes))} tokens, and a batch holds "
                f"{batch_tokens}.",
                hint="raise batch_tokens, or leave long pairs out.",
            )
        self._capacity = batch_tokens
        self._pass: tuple[int, list[list[int]]] = (0, self._shuffled(0))
        self._ends = [len(self._pass[1])]  # of each pass so far: the number of the next batch
        self.batches_per_pass = self._ends[0]  # of the first one

    def batch(self, number: int) -> PairBatch:
        """Batch ``number``, counted from 0 over all passes."""
        while self._ends[-1] <= number:
            self._ends.append(self._ends[-1] + len(self._batches(len(self._ends))))
        turn = bisect_right(self._ends, number)
        place = number - (self._ends[turn - 1] if turn else 0)
        pairs = [self._pairs[i] for i in self._batches(turn)[place]]
        return padded(pairs, start=self._start, pad=self._pad)

    def _batches(self, turn: int) -> list[list[int]]:
        if self._pass[0] != turn:
            self._pass = (turn, self._shuffled(turn))
        return self._pass[1]

    def _shuffled(self, turn: int) -> list[list[int]]:
        generator = generator_for("pair batches", self._seed, turn)
        order = torch.randperm(len(self._pairs), generator=generator).tolist()
        mean = sum(map(sum, self._sizes)) / len(self._sizes)
        together = max(1, round(SORTED_TOGETHER * self._capacity / mean))
        batches = []
        for at in range(0, len(order), together):
            run = sorted(order[at : at + together], key=lambda i: self._sizes[i])
            batches += by_tokens(run, self._sizes, self._capacity)
        return [batches[i] for i in torch.randperm(len(batches), generator=generator).tolist()]


def pairs_in_order(
    pairs: Sequence[Pair], *, batch_tokens: int, start: int, pad: int
) -> list[PairBatch]:
    """Every pair once, by length: what a validation loss is computed over."""
    sizes = [_size(pair) for pair in pairs]
    order = sorted(range(len(pairs)), key=lambda i: sizes[i])
    capacity = max(batch_tokens, max(map(sum, sizes), default=1))
    return [
        padded([pairs[i] for i in batch], start=start, pad=pad)
        for batch in by_tokens(order, sizes, capacity)
    ]


def by_tokens(
    order: Sequence[int], sizes: Sequence[tuple[int, int]], capacity: int
) -> list[list[int]]:
    """Runs of ``order`` whose padded size, source and target, is at most ``capacity``."""
    batches: list[list[int]] = []
    widest = (0, 0)
    for i in order:
        widest = (max(widest[0], sizes[i][0]), max(widest[1], sizes[i][1]))
        if batches and sum(widest) * (len(batches[-1]) + 1) <= capacity:
            batches[-1].append(i)
        else:
            batches.append([i])
            widest = sizes[i]
    return batches


def padded(pairs: Sequence[Pair], *, start: int, pad: int) -> PairBatch:
    """Pairs as rectangles: the decoder reads the start and the target, all but its last token."""
    sources = [list(source) for source, _ in pairs]
    targets = [list(target) for _, target in pairs]
    return PairBatch(
        ids=_rectangle([[start, *target[:-1]] for target in targets], pad),
        targets=_rectangle(targets, IGNORED),
        source=_rectangle(sources, pad),
        source_counts=torch.tensor([len(source) for source in sources]),
    )


def _rectangle(rows: list[list[int]], filling: int) -> Tensor:
    longest = max(map(len, rows))
    return torch.tensor([row + [filling] * (longest - len(row)) for row in rows])


def _size(pair: Pair) -> tuple[int, int]:
    return len(pair[0]), len(pair[1])
