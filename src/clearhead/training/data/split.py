"""Which texts are held out for validation: never more than asked for, and none learned as well."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from clearhead.errors import InputError
from clearhead.training.random_seed import generator_for

WHOLE_DOCUMENTS = 20  # from so many different documents on, whole ones are held out
ENOUGH = 0.5  # of what was asked for; if whole documents make less, a large one is cut


def held_out(documents: Sequence[str], share: float, seed: int) -> tuple[list[str], list[str]]:
    """Texts to train on and texts to validate on, at most ``share`` of all characters.

    Of few documents the end of each is held out. Of many, some whole ones are, as far as they fit;
    if the only ones left are too large, the end of the largest is. Copies of a document stay on the
    same side, so nothing that is validated on is learned.
    """
    if not 0 < share <= 0.5:
        raise InputError(
            f"the share held out for validation must be above 0 and at most 0.5; got {share}.",
            hint="a validation set larger than what is learned from says little.",
        )
    copies: dict[str, int] = {}
    for document in documents:
        copies[document] = copies.get(document, 0) + 1
    if len(copies) < WHOLE_DOCUMENTS:
        cuts = {document: len(document) - int(len(document) * share) for document in copies}
    else:
        cuts = _cuts_of_many(copies, share * sum(map(len, documents)), seed)
    parts = [(text[: cuts.get(text, len(text))], text[cuts.get(text, len(text)) :])
             for text in documents]  # fmt: skip
    return [learned for learned, _ in parts if learned], [held for _, held in parts if held]


def _cuts_of_many(copies: dict[str, int], wanted: float, seed: int) -> dict[str, int]:
    """Where documents are cut: at 0 those that are held out whole."""
    texts = list(copies)
    order = torch.randperm(len(texts), generator=generator_for("held out", seed)).tolist()
    cuts: dict[str, int] = {}
    held = 0
    for index in order:
        size = len(texts[index]) * copies[texts[index]]
        if held + size <= wanted:
            cuts[texts[index]] = 0
            held += size
    if held < ENOUGH * wanted:
        large = max((text for text in texts if text not in cuts), key=len)
        cuts[large] = len(large) - int((wanted - held) / copies[large])
    return cuts
