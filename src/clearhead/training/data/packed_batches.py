"""Batches for language models: documents one after another, cut into rows of the same length.

Every pass shuffles the documents, cuts them at other places and shuffles the rows. Batch number n
depends only on the seed and n, so a resumed run simply continues with the next number.
"""

from __future__ import annotations

from collections.abc import Sequence

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
        self._shifts = min(context, self.total - context)  # places where the first row may begin
        rows = (self.total - self._shifts) // context
        self._rows = max(1, min(batch_tokens // context, rows))
        self.batches_per_pass = max(1, rows // self._rows)
        self._pass = (-1, torch.empty(0), torch.empty(0), torch.empty(0))

    def batch(self, number: int) -> PackedBatch:
        """Batch ``number``, counted from 0 over all passes."""
        turn, place = divmod(number, self.batches_per_pass)
        if self._pass[0] != turn:
            self._pass = (turn, *self._shuffled(turn))
        _, stream, owners, starts = self._pass
        return cut(stream, owners, starts[place * self._rows :][: self._rows], self._context)

    def _shuffled(self, turn: int) -> tuple[Tensor, Tensor, Tensor]:
        """The documents in a new order, whose each token is, and where rows begin."""
        generator = generator_for("packed batches", self._seed, turn)
        order = torch.randperm(len(self._documents), generator=generator).tolist()
        stream, owners = joined([self._documents[i] for i in order])
        shift = int(torch.randint(self._shifts, (1,), generator=generator))
        starts = torch.arange(shift, self.total - self._context, self._context)
        return stream, owners, starts[torch.randperm(len(starts), generator=generator)]


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
    ids, owner = stream[places].long(), owners[places].long()
    targets = torch.where(owner[:, 1:] == owner[:, :-1], ids[:, 1:], IGNORED)
    if bool((owner[:, :1] == owner).all()):
        return PackedBatch(ids[:, :-1], ids[:, 1:])
    owner = owner[:, :-1]
    index = torch.arange(length)
    begins = torch.ones_like(owner, dtype=torch.bool)
    begins[:, 1:] = owner[:, 1:] != owner[:, :-1]
    first = torch.where(begins, index, 0).cummax(dim=1).values
    return PackedBatch(ids[:, :-1], targets, documents=owner, positions=index - first)
