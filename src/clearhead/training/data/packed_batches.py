"""Batches for language models: documents one after another, cut into rows of the same length.

Every pass shuffles the documents, cuts them at other places and shuffles the rows. The stream of a
pass is a ring: the row at its end goes on with its beginning. So every token but the first of each
document is to be predicted exactly once in a pass. The rows of all passes follow each other, and
each batch takes the next ones: none is left out. Batch number n depends only on the seed and n, so
a resumed run simply continues with the next number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from clearhead.errors import InputError
from clearhead.training.data.batch import IGNORED, PackedBatch
from clearhead.training.random_seed import generator_for


class PackedBatches:
    """Rows of ``context`` tokens, about ``batch_tokens`` tokens to a batch."""

    def __init__(
        self, documents: Sequence[Sequence[int]], *, context: int, batch_tokens: int, seed: int
    ) -> None:
        held = [torch.tensor(ids, dtype=torch.int32) for ids in documents if len(ids)]
        self.total = sum(len(ids) for ids in held)
        if self.total < context + 1:
            raise InputError(
                f"the texts have {self.total} tokens, too few for one row of {context} and the "
                "token after it.",
                hint="give more text, or a shorter context.",
            )
        self._documents, self._context, self._seed = held, context, seed
        self._rows_per_pass = -(-self.total // context)
        self._rows = max(1, min(batch_tokens // context, self._rows_per_pass))
        self.batches_per_pass = -(-self._rows_per_pass // self._rows)
        self._pass: tuple[int, _Ring] | None = None

    def batch(self, number: int) -> PackedBatch:
        """Batch ``number``, counted from 0 over all passes."""
        first, windows = number * self._rows, []
        last = first + self._rows
        while first < last:
            turn, place = divmod(first, self._rows_per_pass)
            end = min(last, (turn + 1) * self._rows_per_pass)
            windows.append(self._ring(turn).windows(place, end - first + place, self._context))
            first = end
        return batch_of(*(torch.cat(parts) for parts in zip(*windows, strict=True)))

    def _ring(self, turn: int) -> _Ring:
        if self._pass is None or self._pass[0] != turn:
            self._pass = (turn, self._shuffled(turn))
        return self._pass[1]

    def _shuffled(self, turn: int) -> _Ring:
        """The documents in a new order, and where rows begin."""
        generator = generator_for("packed batches", self._seed, turn)
        order = torch.randperm(len(self._documents), generator=generator).tolist()
        stream, owners = joined([self._documents[i] for i in order])
        shift = int(torch.randint(self._context, (1,), generator=generator))
        rows = torch.randperm(self._rows_per_pass, generator=generator)
        return _Ring(stream, owners, shift, rows)


class _Ring(NamedTuple):
    """The tokens of a pass, whose document each is, where the first row begins, rows in order."""

    stream: Int[Tensor, " token"]
    owners: Int[Tensor, " token"]
    shift: int
    rows: Int[Tensor, " row"]

    def windows(
        self, first: int, last: int, length: int
    ) -> tuple[Int[Tensor, "row window"], Int[Tensor, "row window"]]:
        """Ids of some rows, each with the token after it; and the documents that they are of.

        What comes after one way round the ring belongs to no document of it.
        """
        total, documents = len(self.stream), int(self.owners[-1]) + 1
        begin = self.shift + self.rows[first:last, None] * length
        places = begin + torch.arange(length + 1)
        rounds = places.div(total, rounding_mode="floor")
        owners = self.owners[places % total] + documents * rounds  # the end is not the beginning
        behind = places > self.shift + total  # the token there still is to be predicted
        return self.stream[places % total].long(), torch.where(behind, -1, owners.long())


def in_order(
    documents: Sequence[Sequence[int]], *, context: int, batch_tokens: int
) -> list[PackedBatch]:
    """Every token once, from beginning to end: what a validation loss is computed over."""
    stream, owners = joined([torch.tensor(ids, dtype=torch.int32) for ids in documents if len(ids)])
    starts = torch.arange(0, len(stream) - 1, context)
    whole, last = starts[starts + context < len(stream)], starts[starts + context >= len(stream)]
    rows = max(1, batch_tokens // context)
    runs = [whole[at : at + rows] for at in range(0, len(whole), rows)]
    batches = [cut(stream, owners, run, context) for run in runs]
    if len(last):  # one shorter row
        batches.append(cut(stream, owners, last, len(stream) - 1 - int(last[0])))
    return [batch for batch in batches if batch.rows and batch.tokens]


def joined(documents: Sequence[Tensor]) -> tuple[Int[Tensor, " token"], Int[Tensor, " token"]]:
    """All documents as one stream, and the number of the document that each token belongs to."""
    if not documents:
        raise InputError("there is no text to learn from: every document is empty.")
    lengths = torch.tensor([len(ids) for ids in documents])
    owners = torch.repeat_interleave(torch.arange(len(documents), dtype=torch.int32), lengths)
    return torch.cat(list(documents)), owners


def cut(
    stream: Int[Tensor, " token"],
    owners: Int[Tensor, " token"],
    starts: Int[Tensor, " row"],
    length: int,
) -> PackedBatch:
    """Rows of ``length`` tokens that begin at ``starts``, each with the tokens that follow."""
    places = starts[:, None] + torch.arange(length + 1)
    return batch_of(stream[places].long(), owners[places].long())


def batch_of(ids: Int[Tensor, "row window"], owner: Int[Tensor, "row window"]) -> PackedBatch:
    """A batch of windows: all tokens but the last are read, all but the first predicted.

    A token is predicted from tokens of its own document; an owner of -1 is filling.
    """
    if bool((owner[:, :1] == owner).all()):
        return PackedBatch(ids[:, :-1], ids[:, 1:])
    known = (owner[:, 1:] == owner[:, :-1]) & (owner[:, 1:] >= 0)
    targets = torch.where(known, ids[:, 1:], IGNORED)
    owner = owner[:, :-1]
    index = torch.arange(owner.shape[1])
    begins = torch.ones_like(owner, dtype=torch.bool)
    begins[:, 1:] = owner[:, 1:] != owner[:, :-1]
    first = torch.where(begins, index, 0).cummax(dim=1).values
    return PackedBatch(ids[:, :-1], targets, documents=owner, positions=index - first)
