"""Batches for language models: documents one after another, cut into rows of the same length.

Every pass shuffles the documents, cuts them at other places and shuffles the rows. The stream of a
pass is a ring: the row at its end goes on with its beginning. So every token but the first of each
document is to be predicted exactly once in a pass. The rows of all passes follow each other, and
each batch takes the next ones: none is left out. Batch number n depends only on the seed and n, so
a resumed run simply continues with the next number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias, overload

import numpy as np
import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from clearhead.errors import InputError
from clearhead.training.data.batches.batch import IGNORED, PackedBatch
from clearhead.training.data.tokens.file import TokenFile
from clearhead.training.random_seed import generator_for

Documents: TypeAlias = TokenFile | Sequence[Sequence[int]]


class PackedBatches:
    """Rows of ``context`` tokens, about ``batch_tokens`` tokens to a batch.

    The tokens stay where they are, in a mapped file or in memory: a pass holds only the order of
    the documents and of the rows.
    """

    def __init__(self, documents: Documents, *, context: int, batch_tokens: int, seed: int) -> None:
        self._tokens = TokenFile.of(documents)
        self.total = self._tokens.total
        if self.total < context + 1:
            raise InputError(
                f"the texts have {self.total} tokens, too few for one row of {context} and the "
                "token after it.",
                hint="give more text, or a shorter context.",
            )
        self._context, self._seed = context, seed
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
        order = torch.randperm(len(self._tokens), generator=generator)
        shift = int(torch.randint(self._context, (1,), generator=generator))
        rows = torch.randperm(self._rows_per_pass, generator=generator)
        return _Ring(Stream(self._tokens, order.numpy()), shift, rows)


class Stream:
    """Documents one after another, in some order, without a copy of them."""

    def __init__(self, tokens: TokenFile, order: NDArray[np.int64] | None = None) -> None:
        chosen = np.arange(len(tokens)) if order is None else order
        begins = tokens.begins[chosen]
        self._ends = np.cumsum(tokens.ends[chosen] - begins)
        self._moved = begins - np.concatenate([np.zeros(1, np.int64), self._ends])[:-1]
        self._ids = tokens.ids
        self.total, self.documents = tokens.total, len(chosen)

    def at(
        self, places: Int[Tensor, "row window"]
    ) -> tuple[Int[Tensor, "row window"], Int[Tensor, "row window"]]:
        """The ids at some places of the stream, and the number of the document of each."""
        found = places.numpy()
        owners = np.searchsorted(self._ends, found, side="right")
        ids = self._ids[found + self._moved[owners]].astype(np.int64)
        return torch.from_numpy(ids), torch.from_numpy(owners)


class _Ring(NamedTuple):
    """The tokens of a pass, where the first row begins, and the rows in order."""

    stream: Stream
    shift: int
    rows: Int[Tensor, " row"]

    def windows(
        self, first: int, last: int, length: int
    ) -> tuple[Int[Tensor, "row window"], Int[Tensor, "row window"]]:
        """Ids of some rows, each with the token after it; and the documents that they are of.

        What comes after one way round the ring belongs to no document of it.
        """
        total, documents = self.stream.total, self.stream.documents
        begin = self.shift + self.rows[first:last, None] * length
        places = begin + torch.arange(length + 1)
        rounds = places.div(total, rounding_mode="floor")
        ids, owners = self.stream.at(places % total)
        owners = owners + documents * rounds  # the end is not the beginning
        behind = places > self.shift + total  # the token there still is to be predicted
        return ids, torch.where(behind, -1, owners)


class InOrder(Sequence[PackedBatch]):
    """Every token once, from beginning to end: what a validation loss is computed over."""

    def __init__(self, documents: Documents, *, context: int, batch_tokens: int) -> None:
        tokens = TokenFile.of(documents)
        self._stream, self._context = Stream(tokens), context
        self._whole = max(0, tokens.total - 1) // context  # rows; a shorter one may follow
        self._rows = max(1, batch_tokens // context)
        runs = range(0, self._whole, self._rows)
        self._batches = [(at, min(at + self._rows, self._whole)) for at in runs]
        if self._whole * context < tokens.total - 1:
            self._batches.append((self._whole, self._whole + 1))
        self._batches = [run for run in self._batches if self._cut(*run).tokens]
        self.tokens = tokens.total - len(tokens)  # that are predicted: all but each first one

    def __len__(self) -> int:
        return len(self._batches)

    @overload
    def __getitem__(self, index: int) -> PackedBatch: ...
    @overload
    def __getitem__(self, index: slice) -> list[PackedBatch]: ...
    def __getitem__(self, index: int | slice) -> PackedBatch | list[PackedBatch]:
        if isinstance(index, slice):
            return [self._cut(*run) for run in self._batches[index]]
        return self._cut(*self._batches[index])

    def _cut(self, first: int, last: int) -> PackedBatch:
        """Some rows, each with the token that follows it."""
        length = min(self._context, self._stream.total - 1 - first * self._context)
        starts = torch.arange(first, last)[:, None] * self._context
        return batch_of(*self._stream.at(starts + torch.arange(length + 1)))


def in_order(documents: Documents, *, context: int, batch_tokens: int) -> Sequence[PackedBatch]:
    """Batches of every token once, in order; each is made when it is asked for."""
    return InOrder(documents, context=context, batch_tokens=batch_tokens)


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
