"""Batches of chats: whole ones, side by side in rows, that do not see each other."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from clearhead.errors import InputError
from clearhead.training.data.batches.batch import IGNORED, PackedBatch
from clearhead.training.data.batches.passes import Passes, shuffled
from clearhead.training.data.chats import Example
from clearhead.training.random_seed import generator_for


class ChatBatches:
    """Rows of at most ``row`` tokens, about ``batch_tokens`` tokens to a batch.

    Every pass shuffles the chats; each answer is learned once in it.
    """

    def __init__(
        self, examples: Sequence[Example], *, row: int, batch_tokens: int, seed: int
    ) -> None:
        self._examples = [cut_to(example, row) for example in examples]
        self._row, self._rows, self._seed = row, max(1, batch_tokens // row), seed
        if not any(any(example.learned[1:]) for example in self._examples):
            raise InputError("the chats have no answer to learn from.")
        self._passes = Passes(self._pass)
        self.batches_per_pass = self._passes.first

    def batch(self, number: int) -> PackedBatch:
        """Batch ``number``, counted from 0 over all passes."""
        return packed(self._passes.item(number), self._row)

    def _pass(self, turn: int) -> list[list[list[Example]]]:
        generator = generator_for("chat batches", self._seed, turn)
        rows = shuffled(in_rows(shuffled(self._examples, generator), self._row), generator)
        return batched(rows, self._rows)


def chats_in_order(
    examples: Sequence[Example], *, row: int, batch_tokens: int
) -> list[PackedBatch]:
    """Every chat once: what a validation loss is computed over."""
    rows = in_rows([cut_to(example, row) for example in examples], row)
    batches = [packed(some, row) for some in batched(rows, max(1, batch_tokens // row))]
    return [batch for batch in batches if batch.tokens]


def cut_to(example: Example, row: int) -> Example:
    """The end of a chat that is too long for a row: the last answer is the one that it is for."""
    return Example(example.ids[-row - 1 :], example.learned[-row - 1 :])


def in_rows(examples: Sequence[Example], row: int) -> list[list[Example]]:
    """Chats one after another, a new row where the next one does not fit."""
    rows: list[list[Example]] = []
    used = row
    for example in examples:
        size = len(example.ids) - 1  # the last token is only predicted
        if size < 1:
            continue
        if used + size > row:
            rows.append([])
            used = 0
        rows[-1].append(example)
        used += size
    return rows


def batched(rows: list[list[Example]], count: int) -> list[list[list[Example]]]:
    """So many rows to a batch; batches with nothing to predict are left out."""
    batches = [rows[at : at + count] for at in range(0, len(rows), count)]
    return [
        batch for batch in batches
        if any(any(example.learned[1:]) for examples in batch for example in examples)
    ]  # fmt: skip


def packed(rows: Sequence[Sequence[Example]], row: int) -> PackedBatch:
    """Rows as a batch; only what is to be learned is a target."""
    longest = min(row, max(sum(len(e.ids) - 1 for e in examples) for examples in rows))
    ids = torch.zeros(len(rows), longest, dtype=torch.long)
    targets = torch.full_like(ids, IGNORED)
    documents, positions = torch.full_like(ids, -1), torch.zeros_like(ids)
    for number, examples in enumerate(rows):
        at = 0
        for document, example in enumerate(examples):
            size = len(example.ids) - 1
            span = slice(at, at + size)
            ids[number, span] = torch.tensor(example.ids[:-1])
            targets[number, span] = _targets(example)
            documents[number, span], positions[number, span] = document, torch.arange(size)
            at += size
    return PackedBatch(ids, targets, documents=documents, positions=positions)


def _targets(example: Example) -> Tensor:
    return torch.where(torch.tensor(example.learned[1:]), torch.tensor(example.ids[1:]), IGNORED)
