"""``make_patch_map``: patch every layer at every word, and every head, in real runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.explain.interventions.changed_rows import (
    Part,
    Progress,
    RowChange,
    changed_states,
    recorded,
)
from clearhead.explain.interventions.places import head_columns
from clearhead.explain.make_look import evaluating
from clearhead.explain.patched.pair import Pair, pair_of
from clearhead.explain.patched.patch_map import PatchMap
from clearhead.explain.why.prediction_run import PredictionRun, Text
from clearhead.explain.why.readout import read_tokens
from clearhead.explain.why.target import predicted, sampled_logits, token_id
from clearhead.layers.block import Block

MOST_TOKENS = 150_000  # of all runs together
LEAST = 1e-3  # of a difference that can be divided by, in logits
CANDIDATES = 10  # likeliest tokens of each text, among which two are chosen
PARTS: tuple[Part, ...] = ("state", "attention", "feed-forward")


@dataclass(frozen=True)
class _Work:
    """All runs: the words that are patched, and the changes in order."""

    columns: tuple[int, ...]
    changes: tuple[RowChange, ...]


def make_patch_map(
    loaded: Loaded,
    text: Text,
    donor: Text,
    *,
    token: int | str | None = None,
    instead: int | str | None = None,
    position: int | str | None = None,
    progress: Progress | None = None,
) -> PatchMap:
    """Patch the donor's run into that of the text, place by place."""
    pair = pair_of(loaded, text, donor, position)
    ids, note = _tokens(pair, token, instead)
    targets = [_target(run, *ids) for run in (pair.run, pair.donor)]
    _check_difference(pair, ids, targets)
    work = _work(pair)
    shares = _shares(pair, work, ids, progress)
    return _made(pair, work, ids, targets, shares, note)


def _work(pair: Pair) -> _Work:
    """Every part at every word that can differ; then every head; then all words at once."""
    stack = pair.run.captured.stack
    # In a causal model nothing before the first difference can differ.
    first = pair.changed[0] if stack.causal else 0
    columns = tuple(range(first, len(pair.columns)))
    layers = range(len(stack.blocks))
    changes = [
        RowChange(layer, part, positions=pair.columns[column].tokens)
        for part in PARTS
        for layer in layers
        for column in columns
    ]
    for layer in layers:
        block = stack.blocks[layer]
        assert isinstance(block, Block)
        for head in range(block.attention.heads):
            changes.append(RowChange(layer, "heads", head_columns(block.attention, head)))
    changes.append(RowChange(0, "state"))
    tokens = len(changes) * len(pair.run.passage)
    if tokens > MOST_TOKENS:
        raise InputError(
            f"{len(changes):,} runs of {len(pair.run.passage)} tokens would be needed, and "
            f"{MOST_TOKENS // len(changes)} tokens are the most here.",
            hint="take a shorter text; ch.patch patches single places of any text.",
        )
    return _Work(columns, tuple(changes))


def _shares(
    pair: Pair, work: _Work, ids: Sequence[int], progress: Progress | None
) -> Float[Tensor, " change"]:
    stack, loaded = pair.run.captured.stack, pair.run.loaded
    with evaluating(loaded):
        own, given = (stack.begin(_row(run)) for run in (pair.run, pair.donor))
        states = changed_states(
            stack, own, work.changes, recorded(stack, given), pair.run.position, progress
        )
        logits = read_tokens(loaded, states, ids).logits
    found = logits[:, 0] - logits[:, 1]
    donor = _target(pair.donor, ids[0], ids[1])
    return (found[0] - found[1:]) / (found[0] - donor)


def _row(run: PredictionRun) -> Tensor:
    device = next(run.loaded.model.parameters()).device
    return torch.tensor([[token.id for token in run.passage.tokens]], device=device)


def _made(
    pair: Pair,
    work: _Work,
    ids: Sequence[int],
    targets: Sequence[float],
    shares: Float[Tensor, " change"],
    note: str | None,
) -> PatchMap:
    run, loaded = pair.run, pair.run.loaded
    layers = len(run.captured.stack.blocks)
    each = layers * len(work.columns)
    numbers = shares.numpy()
    maps = []
    for part in range(len(PARTS)):
        whole = np.zeros((layers, len(pair.columns)))
        whole[:, list(work.columns)] = numbers[part * each : (part + 1) * each].reshape(layers, -1)
        maps.append(whole)
    tokens = [predicted(loaded, one.logits, id) for one in (pair.run, pair.donor) for id in ids[:2]]
    return PatchMap(
        text=run.passage.text,
        donor=pair.donor.passage.text,
        model=loaded.name,
        position=run.position,
        mark=next(mark for mark in pair.columns if run.position in mark.tokens),
        token=tokens[0],
        instead=tokens[1],
        donor_token=tokens[2],
        donor_instead=tokens[3],
        target=targets[0],
        donor_target=targets[1],
        columns=pair.columns,
        others=pair.others,
        changed=pair.changed,
        layers=tuple(f"L{layer}" for layer in range(layers)),
        states=maps[0],
        attention=maps[1],
        feed_forward=maps[2],
        heads=numbers[3 * each : -1].reshape(layers, -1).copy(),
        whole=float(numbers[-1]),
        notes=tuple(_notes(work, note)),
    )


def _target(run: PredictionRun, token: int, instead: int) -> float:
    return float(run.logits[token].double() - run.logits[instead].double())


def _tokens(
    pair: Pair, token: int | str | None, instead: int | str | None
) -> tuple[tuple[int, int], str | None]:
    """The tokens that are compared: unless given, the likeliest of each text."""
    loaded, note = pair.run.loaded, None
    best = [int(sampled_logits(loaded, run.logits).argmax()) for run in (pair.run, pair.donor)]
    if best[0] == best[1] and token is None and instead is None:
        best = _most_changed(pair)
        note = (
            "Both texts predict the same token, so the two tokens whose probabilities change most "
            "are compared."
        )
    chosen = best[0] if token is None else token_id(loaded, token)
    other = best[1] if instead is None else token_id(loaded, instead, "instead")
    if chosen == other:
        raise InputError(
            "token and instead are the same token, so that their difference is 0.",
            hint="choose the answer of the first text as token, that of the second as instead.",
        )
    return (chosen, other), note


def _most_changed(pair: Pair) -> list[int]:
    """Of the likeliest tokens of both texts, those that gain and lose most."""
    loaded = pair.run.loaded
    logs = [
        sampled_logits(loaded, run.logits).double().log_softmax(0) for run in (pair.run, pair.donor)
    ]
    likely = {id for one in logs for id in one.topk(min(CANDIDATES, len(one))).indices.tolist()}
    change = {id: float(logs[0][id] - logs[1][id]) for id in sorted(likely)}
    return [max(change, key=change.__getitem__), min(change, key=change.__getitem__)]


def _check_difference(pair: Pair, ids: Sequence[int], targets: Sequence[float]) -> None:
    if abs(targets[0] - targets[1]) >= LEAST:
        return
    loaded = pair.run.loaded
    names = [predicted(loaded, pair.run.logits, id).text for id in ids]
    raise InputError(
        f"both texts give the same answer: logit({names[0]!r}) − logit({names[1]!r}) is "
        f"{targets[0]:.4f} for both, so that no part of the model can change it.",
        hint="choose tokens that the two texts do not predict alike: token=…, instead=….",
    )


def _notes(work: _Work, note: str | None) -> list[str]:
    notes = [] if note is None else [note]
    notes.append(
        "share = (target − target when patched) / (target − target of the other text): 0 is this "
        "text's answer, 1 the other's."
    )
    if work.columns[0] > 0:
        notes.append(
            "Words before the first difference are not patched: this model is causal, so they are "
            "the same in both texts."
        )
    notes.append(
        "Each cell is a real run in which only this place is changed. Shares of several places do "
        "not add up: one may undo or need another."
    )
    return notes
