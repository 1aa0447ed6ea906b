"""Batches of pairs of sentences that mean the same, or answer each other: for embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from clearhead.errors import InputError
from clearhead.training.data.batches.batch import IGNORED, Batch
from clearhead.training.data.batches.pairs import Pair
from clearhead.training.data.batches.passes import Passes, rectangle, shuffled
from clearhead.training.random_seed import generator_for


@dataclass(frozen=True)
class SentenceBatch(Batch):
    """First sentences in ``ids``, second ones in ``second``; the first ``counts`` ids are real.

    ``targets`` has one that counts in each row: a batch has as many things to predict as pairs.
    """

    counts: Int[Tensor, " row"]
    second: Int[Tensor, "row second"]
    second_counts: Int[Tensor, " row"]

    def parts(self, count: int) -> list[SentenceBatch]:  # noqa: ARG002
        """The whole batch: its pairs are compared with each other."""
        return [self]


class SentenceBatches:
    """Pairs in random order, about ``batch_tokens`` ids to a batch, padding too."""

    def __init__(self, pairs: Sequence[Pair], *, batch_tokens: int, pad: int, seed: int) -> None:
        self._pairs, self._tokens, self._pad, self._seed = pairs, batch_tokens, pad, seed
        self._passes = Passes(self._pass)
        self.batches_per_pass = self._passes.first

    def batch(self, number: int) -> SentenceBatch:
        """Batch ``number``, counted from 0 over all passes."""
        return sentences(self._passes.item(number), self._pad)

    def _pass(self, turn: int) -> list[list[Pair]]:
        generator = generator_for("sentence batches", self._seed, turn)
        return in_batches(shuffled(self._pairs, generator), self._tokens)


def sentences_in_order(
    pairs: Sequence[Pair], *, batch_tokens: int, pad: int
) -> list[SentenceBatch]:
    """Every pair once: what a validation loss is computed over."""
    return [sentences(some, pad) for some in in_batches(pairs, batch_tokens)]


def in_batches(pairs: Sequence[Pair], batch_tokens: int) -> list[list[Pair]]:
    """Runs of pairs whose padded size is about ``batch_tokens``; at least two pairs each.

    Raises:
        InputError: there are fewer than two pairs.
    """
    if len(pairs) < 2:
        raise InputError(
            "pairs of sentences are told apart from each other: at least two are needed to train "
            "on and two to validate on.",
            hint="give more pairs, or pairs for validation.",
        )
    batches: list[list[Pair]] = [[]]
    for pair in pairs:
        widest = [max(len(one[side]) for one in [*batches[-1], pair]) for side in (0, 1)]
        if len(batches[-1]) >= 2 and sum(widest) * (len(batches[-1]) + 1) > batch_tokens:
            batches.append([])
        batches[-1].append(pair)
    if len(batches) > 1 and len(batches[-1]) < 2:
        last = batches.pop()
        batches[-1] += last
    return batches


def sentences(pairs: Sequence[Pair], pad: int) -> SentenceBatch:
    """Pairs as rectangles."""
    first, second = [list(one) for one, _ in pairs], [list(other) for _, other in pairs]
    ids = rectangle(first, pad)
    targets = torch.full_like(ids, IGNORED)
    targets[:, 0] = 0
    return SentenceBatch(
        ids=ids, targets=targets,
        counts=torch.tensor(list(map(len, first))), second=rectangle(second, pad),
        second_counts=torch.tensor(list(map(len, second))),
    )  # fmt: skip
