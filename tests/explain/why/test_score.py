"""Scores as sums: against the score that watch sees, for every family and kind of position."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

import clearhead as ch
from clearhead.checkpoints.load import Loaded
from clearhead.explain.why.score import score_why
from clearhead.text.characters import CharacterTokenizer
from tests.shared.explained_models import random_decoder
from tests.shared.tiny_models import DECODERS, Tiny

pytestmark = pytest.mark.usefixtures("one_thread")
LETTERS = CharacterTokenizer("abcdefgh ")


def seen_score(loaded: Loaded, text: str, head: str, query: int, key: int) -> float:
    """q · k · scale of the tensors that the layer itself used."""
    with ch.watch(loaded.model) as seen, torch.no_grad():
        loaded.model(torch.tensor([LETTERS.encode(text)]))
    view = seen[head]
    record, number = view.record, int(head.partition("H")[2])
    group = record.query.shape[1] // record.key.shape[1]
    q, k = record.query[0, number, query].double(), record.key[0, number // group, key].double()
    return float(q @ k) * record.facts.scale


@pytest.mark.parametrize("name", [*DECODERS, "bert-masked", "distilbert"])
def test_both_sums_give_the_layers_own_score(name: str, tiny: Callable[[str], Tiny]) -> None:
    loaded = replace(tiny(name).loaded, tokenizer=LETTERS)
    text, last = "a b c d", loaded.config.layers - 1
    for head in ("L0H1", f"L{last}H{loaded.config.heads - 1}"):
        found = score_why(loaded, text, head, "d", "b")
        assert found.exact, found
        places = (found.query.tokens[-1], found.key.tokens[-1])
        assert found.score == pytest.approx(seen_score(loaded, text, head, *places), abs=1e-4)
        for parts in (found.at_query, found.at_key):
            assert sum(part.value for part in parts) == pytest.approx(found.score, abs=1e-6)


@pytest.mark.parametrize(
    "change",
    [
        {"norm_place": "after"}, {"norm_place": "around", "norm": "layer"},
        {"positions": "learned"}, {"attention_norm": True, "attention_bias": True, "kv_heads": 2},
        {"attention_scale": 0.7},
    ],
    ids=str,
)  # fmt: skip
def test_both_sums_with_an_option_changed(change: dict[str, Any]) -> None:
    loaded = replace(random_decoder(**change), tokenizer=LETTERS)
    found = score_why(loaded, "a b c d", "L2H5", "d", "a")
    assert found.exact and "L1H3" in {part.name for part in found.at_key}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("L2", "d", "a"), "one head is wanted"),
        (("L2H5", "a", "d"), "stands behind"),
        (("L2H5", "x", "a"), "there is no word 'x' here"),
    ],
)
def test_bad_arguments_are_explained(arguments: tuple[str, str, str], message: str) -> None:
    loaded = replace(random_decoder(), tokenizer=LETTERS)
    with pytest.raises(ch.ClearheadError, match=message):
        score_why(loaded, "a b c d", *arguments)
