"""Looks whose every number is computed a second time, in plain NumPy loops that share no code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch

from clearhead.explain.look import Look
from clearhead.explain.pictures import Aids
from clearhead.text.token import Token
from clearhead.trace.passage import Passage
from clearhead.trace.record import LayerFacts, LayerRecord
from clearhead.trace.row_rules import RowMask, RowRules
from clearhead.trace.seen import Seen

KEY_DIM, VALUE_DIM, HEADS, KV_HEADS = 7, 5, 3, 1
PIECES = [
    "The",
    " un",
    "happy",
    " kids",
    " left",
    " the",
    " li",
    "ons",
    ",",
    " so",
    " they",
    " ran",
]
WORDS = [[0], [1, 2], [3], [4], [5], [6, 7], [8], [9], [10], [11]]
KINDS = ("causal", "window", "bidirectional", "cross")


@dataclass(frozen=True)
class Told:
    """A look, and its weights by layer as (head, query, key), with the masks and ‖v‖."""

    look: Look
    weights: dict[str, np.ndarray]
    seen: dict[str, np.ndarray]
    lengths: dict[str, np.ndarray]  # (head, key)
    words: list[list[int]]  # tokens of each word
    special: list[int]  # tokens
    causal: bool

    def wanted(self, layers: list[str], aids: Aids, head: int | None = None) -> Wanted:
        """The picture of some layers' heads as one, or of one head."""
        parts, masks = [], []
        for name in layers:
            for number in range(HEADS) if head is None else [head]:
                parts.append(self._head(name, number, aids))
                masks.append(self._merged(self.seen[name].astype(float), aids) > 0)
        stacked = np.stack(parts)
        pooled = {"max": stacked.max(0), "mean": stacked.mean(0), "sum": stacked.sum(0)}[aids.pool]
        hidden = self.hidden(aids)
        mass = np.array([part[:, hidden].sum(1) for part in parts]).mean(0)
        return Wanted(pooled, mass, hidden, np.any(masks, axis=0))

    def hidden(self, aids: Aids) -> list[int]:
        """The columns that are hidden."""
        columns = self.words if aids.words else [[one] for word in self.words for one in word]
        special = [c for c, tokens in enumerate(columns) if set(tokens) <= set(self.special)]
        if aids.hide == "nothing":
            return []
        first = [0] if aids.hide == "first and special" and self.causal else []
        return sorted({*first, *special})

    def _head(self, name: str, head: int, aids: Aids) -> np.ndarray:
        rows = self.weights[name][head].copy()
        if aids.measure != "weight":
            for row in range(len(rows)):
                rows[row] *= self.lengths[name][head]
                rows[row] /= rows[row].sum()
        return self._merged(rows, aids)

    def _merged(self, rows: np.ndarray, aids: Aids) -> np.ndarray:
        if not aids.words:
            return rows
        found = np.zeros((len(self.words), len(self.words)))
        for a, first in enumerate(self.words):
            for b, second in enumerate(self.words):
                found[a, b] = sum(rows[i, j] for i in first for j in second) / len(first)
        return found


@dataclass(frozen=True)
class Wanted:
    """The numbers of a picture."""

    weights: np.ndarray
    mass: np.ndarray
    hidden: list[int]
    visible: np.ndarray


def told_look(kind: str, times: int = 1, **aids: Any) -> Told:
    """A made-up model of two layers, three heads each, over the same words ``times`` times."""
    passage, words, special = _passage(kind, times)
    count = len(passage)
    make = np.random.default_rng(29)
    cross = kind == "cross"
    weights, seen, lengths, records = {}, {}, {}, []
    for number in range(2):
        name = f"{'C' if cross else 'L'}{number}"
        mask = _mask(kind, number, count)
        q = make.normal(size=(HEADS, count, KEY_DIM)) * 1.7
        k, v = (make.normal(size=(KV_HEADS, count, size)) for size in (KEY_DIM, VALUE_DIM))
        scores = np.where(mask, 0.5 * q @ k[0].T, -np.inf)
        scores = scores - scores.max(axis=2, keepdims=True)
        weights[name] = np.exp(scores) / np.exp(scores).sum(axis=2, keepdims=True)
        seen[name], lengths[name] = mask, np.repeat(np.linalg.norm(v, axis=2), HEADS, axis=0)
        records.append(_record(name, kind, mask, q, k, v, weights[name]))
    source = passage if cross else None
    # A row of cross-attention has the name of the token that it wrote: the one behind it.
    read = Passage(passage.text, (Token(0, "⏵", 0, 0, True), *passage.tokens[:-1]))
    trace = Seen(records, read if cross else passage, source=source)
    causal = kind in ("causal", "window")
    return Told(Look(trace, aids=Aids(**aids)), weights, seen, lengths, words, special, causal)


def _passage(kind: str, times: int) -> tuple[Passage, list[list[int]], list[int]]:
    text, tokens, words = "", [], []
    pieces = PIECES * times
    for number, piece in enumerate(pieces):
        piece = f" {piece}" if number and piece == "The" else piece
        tokens.append(Token(number, piece, len(text), len(text) + len(piece)))
        text += piece
    for turn in range(times):
        words += [[one + turn * len(PIECES) for one in word] for word in WORDS]
    if kind != "bidirectional":
        return Passage(text, tuple(tokens)), words, []
    first, last = Token(98, "[CLS]", 0, 0, True), Token(99, "[SEP]", len(text), len(text), True)
    moved = [[one + 1 for one in word] for word in words]
    end = len(tokens) + 1
    return Passage(text, (first, *tokens, last)), [[0], *moved, [end]], [0, end]


def _mask(kind: str, layer: int, count: int) -> np.ndarray:
    row, column = np.arange(count)[:, None], np.arange(count)[None]
    if kind == "causal":
        return column <= row
    if kind == "window":
        return (column <= row) & (column > row - (4 if layer == 0 else 9))
    return np.ones((count, count), dtype=bool)


def _record(
    name: str, kind: str, mask: np.ndarray, q: np.ndarray, k: np.ndarray, v: np.ndarray,
    weights: np.ndarray,
) -> LayerRecord:  # fmt: skip
    count = len(mask)
    low, high = mask.argmax(axis=1), count - mask[:, ::-1].argmax(axis=1)
    rules = RowMask(torch.from_numpy(low)[None], torch.from_numpy(high)[None])
    scores = np.where(mask, 0.5 * q @ k[0].T, -np.inf)
    logsum = np.log(np.exp(scores).sum(axis=2))
    what: Literal["self", "cross"] = "cross" if kind == "cross" else "self"
    facts = LayerFacts(
        name, f"layers.{name}", what, kind in ("causal", "window"), HEADS, KV_HEADS, KEY_DIM,
        VALUE_DIM, 0.5, None, torch.float32, "",
    )  # fmt: skip
    floats = [torch.from_numpy(one).float()[None] for one in (q, k, logsum, v, weights @ v[0])]
    return LayerRecord(
        facts, floats[0], floats[1], floats[2], value=floats[3], output=floats[4],
        pieces=[RowRules(count, count, None if mask.all() else rules)],
    )  # fmt: skip
