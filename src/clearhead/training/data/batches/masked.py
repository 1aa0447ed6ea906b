"""Batches for encoders: texts in which some tokens are masked, to be predicted.

As in BERT (Devlin et al. 2019, section 3.1): 15 % of a row's tokens are targets. Of those, 80 % are
replaced by the mask token, 10 % by a random one, and 10 % stay. Special tokens are never targets.
Every pass cuts the texts at other places and masks other tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from jaxtyping import Int
from numpy.typing import NDArray
from torch import Tensor

from clearhead.errors import InputError
from clearhead.text.tokenizer import SpecialTokens, Tokenizer
from clearhead.training.data.batches.batch import IGNORED, Batch
from clearhead.training.data.batches.passes import Passes, rectangle, shuffled
from clearhead.training.data.tokens.file import TokenFile
from clearhead.training.random_seed import generator_for

Documents: TypeAlias = TokenFile | Sequence[Sequence[int]]
Ids: TypeAlias = Sequence[int] | NDArray[Any]
SHARE, MASKED, RANDOM = 0.15, 0.8, 0.1


@dataclass(frozen=True)
class MaskedBatch(Batch):
    """Rows with masked tokens; the first ``counts`` ids of each are real."""

    counts: Int[Tensor, " row"]


@dataclass(frozen=True)
class Masking:
    """How a tokenizer's texts are masked: what rows begin and end with, which ids replace others.

    ``ordinary`` are the ids of the vocabulary that are not special.
    """

    mask: int
    pad: int
    first: tuple[int, ...]
    last: tuple[int, ...]
    ordinary: Int[Tensor, " id"]

    @classmethod
    def of(cls, tokenizer: Tokenizer, vocab: int) -> Masking:
        """For a model with this tokenizer and so many entries.

        Raises:
            InputError: the vocabulary has no mask token.
        """
        specials = tokenizer.specials
        if specials.mask is None:
            raise InputError(
                "this model's vocabulary has no mask token, so nothing can be masked.",
                hint="is it the tokenizer of this encoder?",
            )
        special = {*specials.all, *_named(specials)}
        ordinary = [id for id in range(min(vocab, tokenizer.size)) if id not in special]
        first = () if specials.cls is None else (specials.cls,)
        last = () if specials.sep is None else (specials.sep,)
        return cls(specials.mask, specials.pad or 0, first, last, torch.tensor(ordinary))

    def batch(self, rows: Sequence[Ids], generator: torch.Generator) -> MaskedBatch:
        """Rows of ordinary tokens, with what stands around them, masked."""
        whole = [[*self.first, *map(int, row), *self.last] for row in rows]
        ids = rectangle(whole, self.pad)
        targets = torch.full_like(ids, IGNORED)
        for number, row in enumerate(rows):
            places = torch.randperm(len(row), generator=generator) + len(self.first)
            places = places[: max(1, round(SHARE * len(row)))]
            targets[number, places] = ids[number, places]
            ids[number, places] = self._replaced(ids[number, places], generator)
        return MaskedBatch(ids, targets, counts=torch.tensor(list(map(len, whole))))

    def _replaced(self, ids: Tensor, generator: torch.Generator) -> Tensor:
        drawn = torch.rand(len(ids), generator=generator)
        others = torch.randint(len(self.ordinary), (len(ids),), generator=generator)
        kept = torch.where(drawn < MASKED + RANDOM, self.ordinary[others], ids)
        return torch.where(drawn < MASKED, self.mask, kept)


def _named(specials: SpecialTokens) -> set[int]:
    names = ("bos", "eos", "pad", "unk", "mask", "cls", "sep")
    return {id for name in names if (id := getattr(specials, name)) is not None}


class MaskedBatches:
    """Rows of at most ``row`` tokens, special ones too; about ``batch_tokens`` to a batch."""

    def __init__(
        self, documents: Documents, masking: Masking, *, row: int, batch_tokens: int, seed: int
    ) -> None:
        self._documents = TokenFile.of(documents)
        if not self._documents.total:
            raise InputError("there is no text to learn from: every document is empty.")
        self._masking, self._seed = masking, seed
        self._size, self._rows = _size(masking, row), max(1, batch_tokens // row)
        self._passes = Passes(self._pass)
        self.batches_per_pass = self._passes.first

    def batch(self, number: int) -> MaskedBatch:
        """Batch ``number``, counted from 0 over all passes."""
        generator = generator_for("masking", self._seed, number)
        return self._masking.batch(self._passes.item(number), generator)

    def _pass(self, turn: int) -> list[list[Ids]]:
        generator = generator_for("masked batches", self._seed, turn)
        rows: list[Ids] = []
        for number in range(len(self._documents)):
            ids = self._documents[number]
            shift = int(torch.randint(self._size, (1,), generator=generator)) if turn else 0
            rows += cut_up(ids, self._size, shift)
        rows = shuffled(rows, generator)
        return [rows[at : at + self._rows] for at in range(0, len(rows), self._rows)]


def masked_in_order(
    documents: Documents, masking: Masking, *, row: int, batch_tokens: int, seed: int
) -> list[MaskedBatch]:
    """Every text once, masked always alike: what a validation loss is computed over."""
    size, count = _size(masking, row), max(1, batch_tokens // row)
    held = TokenFile.of(documents)
    rows = [part for number in range(len(held)) for part in cut_up(held[number], size)]
    generator = generator_for("validation masks", seed)
    return [masking.batch(rows[at : at + count], generator) for at in range(0, len(rows), count)]


def cut_up(ids: Ids, size: int, shift: int = 0) -> list[Ids]:
    """Runs of ``size`` ids; the first is ``shift`` long, if that is not 0.

    >>> cut_up([1, 2, 3, 4, 5], 2, shift=1)
    [[1], [2, 3], [4, 5]]
    """
    starts = [0, *range(shift, len(ids), size)] if shift else list(range(0, len(ids), size))
    return [ids[a:b] for a, b in zip(starts, [*starts[1:], len(ids)], strict=True) if a < b]


def _size(masking: Masking, row: int) -> int:
    size = row - len(masking.first) - len(masking.last)
    if size < 1:
        raise InputError(f"a row of {row} tokens holds no text beside its special tokens.")
    return size
