"""Predictions in a page: the likeliest logits of each position, the rest as one number, the lens.

From these the page computes what sampling leaves of a distribution, as ``generation/settings.py``
does: temperature, top-k, top-p, min-p, in float32 and float64 as there. What a temperature makes of
all tokens that are not in the file is one sum for each temperature of the slider, so the bars
are exact. ``page/assets/sampling.js`` is the reader.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from clearhead.checkpoints.load import Loaded
from clearhead.errors import ClearheadError
from clearhead.explain.lens import BlockStates, Lens, lens_at
from clearhead.explain.look import Look
from clearhead.explain.marks import marks_of
from clearhead.explain.pictures import Mark
from clearhead.explain.predictions import (
    KEPT,
    NONE,
    came_ids,
    final_states,
    has_predictions,
    likeliest,
    logit_chunks,
    readable,
)
from clearhead.explain.why.target import token_text
from clearhead.trace.passage import Passage
from clearhead.views.page.blocks import Blocks
from clearhead.views.terminal.predictions import shown_token

BUDGET = 4_000_000  # characters of base64 for all positions
CHARACTERS = 7.5  # for each token that is kept
LEAST = 20  # tokens of a position that are kept in any case
TEMPERATURES = tuple(tenth / 10 for tenth in range(1, 21))
EXPONENTIALS = 5e8  # for the sums at these temperatures; a longer text has the one at 1 alone
LENS_PRODUCTS = 4e10  # multiplications that the lens of a page may take: half a second
SEEDS = 256
NO_TOKEN = 2**32 - 1


@dataclass(frozen=True)
class KeptLogits:
    """What a page keeps of the logits at some positions."""

    ids: Int[Tensor, "position kept"]
    logits: Float[Tensor, "position kept"]  # float32, as they are sampled from
    after: Float[Tensor, " position"]  # the largest logit that is not kept; −∞ if all are
    rests: Float[Tensor, "position temperature"]  # Σ exp(x − largest x) over all that are not kept
    came: Float[Tensor, " position"]  # the logit of the token that came
    ranks: Int[Tensor, " position"]  # and its rank


def add_predictions(blocks: Blocks, look: Look, budget: int = BUDGET) -> dict[str, Any] | None:
    """Put the predictions and the lens of a look into a page; None where there are none."""
    if not has_predictions(look):
        return None
    loaded, passage, _ = readable(look)
    try:
        final, lens = _states_and_lens(look)
        meta = _add_logits(blocks, loaded, passage, final, budget)
        meta["lens"] = _add_lens(blocks, *lens())
    except ClearheadError as error:  # the page has everything else
        return {"missing": f"There are no predictions: {error}"}
    return meta


def add_lens(blocks: Blocks, look: Look) -> dict[str, Any]:
    """Put the lens of a look into a page, without its predictions."""
    _, lens = _states_and_lens(look)
    return _add_lens(blocks, *lens())


def _states_and_lens(look: Look) -> tuple[Tensor, Callable[[], tuple[Lens, bool]]]:
    """Run the model; its final states, and what gives the lens and whether it is of some words."""
    loaded, passage, source = readable(look)
    words = marks_of(passage, len(passage), words=True)
    marks = lens_words(loaded, words, look.chosen_word)
    with BlockStates(loaded, [mark.tokens[-1] for mark in marks]) as states:
        final = final_states(loaded, passage, source)
    return final, lambda: (lens_at(loaded, passage, marks, states), marks != words)


def lens_words(loaded: Loaded, marks: tuple[Mark, ...], chosen: int) -> tuple[Mark, ...]:
    """All words, or, of a long text, so many around the chosen one as may be computed."""
    config = loaded.config
    most = max(8, int(LENS_PRODUCTS / (config.layers * config.vocab * config.model)))
    start = max(0, min(chosen - most // 2, len(marks) - most))
    return marks[start : start + most]


def _add_logits(
    blocks: Blocks, loaded: Loaded, passage: Passage, states: Tensor, budget: int
) -> dict[str, Any]:
    positions, came = len(passage), came_ids(loaded, passage)
    vocab = vocabulary(loaded)
    kept = min(KEPT, vocab, max(LEAST, int(budget / CHARACTERS / positions)))
    several = positions * vocab * len(TEMPERATURES) <= EXPONENTIALS
    temperatures = TEMPERATURES if several or kept == vocab else (1.0,)
    found = [
        kept_logits(logits.float(), came[start : start + len(logits)], kept, temperatures)
        for start, logits in logit_chunks(loaded, states)
    ]
    return logits_meta(blocks, loaded, passage, joined_logits(found), temperatures)


def vocabulary(loaded: Loaded) -> int:
    """The number of tokens that can be predicted: some models have more entries than that."""
    vocab = loaded.config.vocab
    return vocab if loaded.tokenizer is None else min(vocab, loaded.tokenizer.size)


def joined_logits(parts: Sequence[KeptLogits]) -> KeptLogits:
    """What is kept of consecutive positions, as one."""
    return KeptLogits(*(torch.cat([getattr(part, name) for part in parts]) for name in FIELDS))


def logits_meta(
    blocks: Blocks,
    loaded: Loaded,
    passage: Passage,
    found: KeptLogits,
    temperatures: tuple[float, ...],
) -> dict[str, Any]:
    """Put what is kept of the logits at all positions of a text into a page."""
    positions, came = len(passage), came_ids(loaded, passage)
    vocab, kept = vocabulary(loaded), found.ids.shape[1]
    numbers = {name: getattr(found, name) for name in FIELDS}
    table = np.unique([*numbers["ids"].flatten().tolist(), *(id for id in came if id != NONE)])
    places = [NO_TOKEN if id == NONE else int(np.searchsorted(table, id)) for id in came]
    arrays = [
        numbers["logits"].numpy().astype("<f4"),
        np.searchsorted(table, numbers["ids"].numpy()).astype("<u4"),
        numbers["after"].numpy().astype("<f4"),
        np.array(places, dtype="<u4"),
        numbers["came"].numpy().astype("<f4"),
        numbers["ranks"].numpy().astype("<u4"),
        numbers["rests"].numpy().astype("<f8"),
    ]
    return {
        "positions": positions,
        "kept": kept,
        "vocab": vocab,
        "temperatures": list(temperatures),
        "block": blocks.add("predictions", b"".join(map(byte_planes, arrays))),
        "tokens": _add_json(blocks, "tokens", [token_name(loaded, id) for id in table.tolist()]),
        "texts": [mark.text for mark in marks_of(passage, positions, words=False)],
        "uniforms": [random.Random(f"{seed}/0").random() for seed in range(SEEDS)],
        "note": _note(kept, vocab, positions, temperatures),
    }


FIELDS = ("ids", "logits", "after", "rests", "came", "ranks")  # in the order of KeptLogits


def kept_logits(
    logits: Float[Tensor, "rows vocab"],
    came: list[int],
    count: int,
    temperatures: tuple[float, ...] = TEMPERATURES,
) -> KeptLogits:
    """The ``count`` likeliest of each row, and sums over the others."""
    ids = likeliest(logits, count)
    largest = logits.amax(1, keepdim=True)
    others = logits.scatter(1, ids, -torch.inf)
    following = torch.tensor(came)[:, None]
    present = logits.gather(1, following.clamp(min=0))
    return KeptLogits(
        ids, logits.gather(1, ids), others.amax(1), _masses(others, largest, temperatures),
        present[:, 0], (logits > present).sum(1) + 1,
    )  # fmt: skip


def _masses(
    others: Float[Tensor, "rows vocab"],
    largest: Float[Tensor, "rows 1"],
    temperatures: tuple[float, ...],
) -> Float[Tensor, "rows temperature"]:
    """Σ exp(x − largest x) over the other tokens, where x are the logits at a temperature."""
    sums: dict[float, Tensor] = {}
    if 1.0 in temperatures:
        sums[1.0] = (others.double() - largest.double()).exp_().sum(1)
    shifted = others - largest  # in float32, as with_temperature shifts; but it leaves 1 alone
    for one in sorted(set(temperatures) - {1.0}, reverse=True):
        if one not in sums:
            sums |= _halved(shifted, one, temperatures) | sums
    return torch.stack([sums[one] for one in temperatures], 1)


def _halved(
    shifted: Float[Tensor, "rows vocab"], temperature: float, wanted: tuple[float, ...]
) -> dict[float, Float[Tensor, " rows"]]:
    """The sums at a temperature, its half, the half of that …, as long as they are wanted.

    What is divided by half the temperature is twice as large, and exp(2x) is exp(x)².
    """
    powers, sums = (shifted / temperature).double().exp_(), {}
    while temperature in wanted:
        sums[temperature] = powers.sum(1)
        temperature /= 2
        if temperature in wanted:
            powers.square_()
    return sums


def _add_lens(blocks: Blocks, lens: Lens, cut: bool) -> dict[str, Any]:
    content = {
        "words": [mark.text for mark in lens.marks],
        "positions": list(lens.positions),
        "tokens": [[named(text) for text in row] for row in lens.tokens],
        "probabilities": np.round(lens.probabilities, 4).tolist(),
        "final": np.round(lens.final, 4).tolist(),
        "appears": list(lens.appears),
        "first": list(lens.first),
        "cut": cut,
    }
    return {"block": _add_json(blocks, "lens", content)}


def _add_json(blocks: Blocks, name: str, content: object) -> str:
    return blocks.add(name, json.dumps(content).encode("ascii"))


def byte_planes(numbers: Shaped[np.ndarray, "*shape"]) -> bytes:
    """All first bytes, then all second ones …, as deflate likes it."""
    size = numbers.dtype.itemsize
    return np.ascontiguousarray(numbers).view(np.uint8).reshape(-1, size).T.tobytes()


def named(text: str) -> str:
    """A token for the page: its space in front, if there is one, as a sign."""
    name = shown_token(text)
    return f"␣{name}" if text.startswith(" ") and text.strip(" ") else name


_names: WeakKeyDictionary[Any, dict[int, str]] = WeakKeyDictionary()


def token_name(loaded: Loaded, id: int) -> str:
    """The name of a token for the page, made once: decoding takes longer than a lookup."""
    known = _names.setdefault(loaded.model, {})
    if id not in known:
        known[id] = named(token_text(loaded, id))
    return known[id]


def _note(kept: int, vocab: int, positions: int, temperatures: tuple[float, ...]) -> str:
    """What is left out of the file, and why."""
    if kept == vocab:
        return f"This file holds the logits of all {vocab:,} tokens of the vocabulary."
    note = f"This file holds the {kept} likeliest tokens of each position; all others are one bar."
    if kept < KEPT:
        note += f" A text of {positions:,} tokens leaves no room for {KEPT}."
    if len(temperatures) == 1:
        note += (
            " What the others sum to is computed for the temperature 1 alone, as this text is long;"
            " at another one, the bars need top-k."
        )
    return note
