"""Which texts are held out for validation: never more than asked for, and none learned as well."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from clearhead.errors import InputError
from clearhead.training.random_seed import generator_for

WHOLE_DOCUMENTS = 20  # from so many different documents on, whole ones are held out
ENOUGH = 0.5  # of what was asked for; if whole documents make less, a large one is cut
MOST = 1_000_000  # characters: validating on more takes longer than it tells


def cuts(
    digests: Sequence[Hashable], lengths: Sequence[int], share: float, seed: int
) -> NDArray[np.int64]:
    """How many characters of each document are learned; what is behind them is held out.

    At most ``share`` of all characters is held out, and at most ``MOST``. Of few documents the end
    of each is. Of many, some whole ones are, as far as they fit; if the only ones left are too
    large, the end of the largest is. Documents with the same digest are copies: they stay on the
    same side, so nothing that is validated on is learned.
    """
    check_share(share)
    copies: dict[Hashable, int] = {}
    sizes: dict[Hashable, int] = {}
    for digest, length in zip(digests, lengths, strict=True):
        copies[digest] = copies.get(digest, 0) + 1
        sizes[digest] = length
    share = min(share, MOST / max(1, sum(lengths)))
    if len(copies) < WHOLE_DOCUMENTS:
        found = {digest: size - int(size * share) for digest, size in sizes.items()}
    else:
        found = _cuts_of_many(copies, sizes, share * sum(lengths), seed)
    return np.array(
        [found.get(digest, n) for digest, n in zip(digests, lengths, strict=True)], np.int64
    )


def check_share(share: float) -> None:
    """Refuse to hold out nothing, or more than is learned."""
    if not 0 < share <= 0.5:
        raise InputError(
            f"the share held out for validation must be above 0 and at most 0.5; got {share}.",
            hint="a validation set larger than what is learned from says little.",
        )


def held_out(documents: Sequence[str], share: float, seed: int) -> tuple[list[str], list[str]]:
    """Texts to train on and texts to validate on, as :func:`cuts` has it."""
    places = cuts(documents, [len(text) for text in documents], share, seed).tolist()
    both = list(zip(documents, places, strict=True))
    return [text[:at] for text, at in both if at], [text[at:] for text, at in both if text[at:]]


def _cuts_of_many(
    copies: dict[Hashable, int], sizes: dict[Hashable, int], wanted: float, seed: int
) -> dict[Hashable, int]:
    """Where documents are cut: at 0 those that are held out whole."""
    known = list(copies)
    order = torch.randperm(len(known), generator=generator_for("held out", seed)).tolist()
    found: dict[Hashable, int] = {}
    held = 0
    for index in order:
        size = sizes[known[index]] * copies[known[index]]
        if held + size <= wanted:
            found[known[index]] = 0
            held += size
    if held < ENOUGH * wanted:
        large = max((digest for digest in known if digest not in found), key=sizes.__getitem__)
        found[large] = sizes[large] - int((wanted - held) / copies[large])
    return found
