"""Pairs of texts from files: two files, line by line, or one file with a tab in each line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from clearhead.errors import InputError
from clearhead.training.data.corpus import read_text
from clearhead.training.random_seed import generator_for


def read_pairs(paths: Sequence[str | Path]) -> list[tuple[str, str]]:
    """Source and target of each line; lines with nothing on either side are left out."""
    if len(paths) == 1:
        pairs = _from_table(Path(paths[0]))
    elif len(paths) == 2:
        pairs = _from_two(Path(paths[0]), Path(paths[1]))
    else:
        raise InputError(
            f"pairs come from two files, or from one with a tab in each line; got {len(paths)}."
        )
    kept = [(a.strip(), b.strip()) for a, b in pairs if a.strip() and b.strip()]
    if not kept:
        raise InputError(f"{' and '.join(map(str, paths))} hold no pairs.")
    return kept


def held_out_pairs(
    pairs: Sequence[tuple[str, str]], share: float, seed: int
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Pairs to train on and to validate on; the same source is never on both sides."""
    if not 0 < share <= 0.5:
        raise InputError(
            f"the share held out for validation must be above 0 and at most 0.5; got {share}.",
            hint="a validation set larger than what is learned from says little.",
        )
    sources = sorted({source for source, _ in pairs})
    if len(sources) < 2:
        raise InputError(
            "at least two different sources are needed: one to train on, one to validate on."
        )
    order = torch.randperm(len(sources), generator=generator_for("held out", seed)).tolist()
    held = {sources[i] for i in order[: max(1, round(share * len(sources)))]}
    training = [pair for pair in pairs if pair[0] not in held]
    return training, [pair for pair in pairs if pair[0] in held]


def _from_table(path: Path) -> list[tuple[str, str]]:
    pairs = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        parts = line.split("\t")
        if len(parts) == 2:
            pairs.append((parts[0], parts[1]))
        elif line.strip():
            raise InputError(
                f"{path}, line {number}: a source, a tab and a target were wanted; the line has "
                f"{len(parts) - 1} tabs."
            )
    return pairs


def _from_two(source: Path, target: Path) -> list[tuple[str, str]]:
    sources, targets = (read_text(path).removesuffix("\n").split("\n") for path in (source, target))
    if len(sources) != len(targets):
        raise InputError(
            f"{source} has {len(sources)} lines and {target} {len(targets)}; line n of one "
            "belongs to line n of the other."
        )
    return list(zip(sources, targets, strict=True))
