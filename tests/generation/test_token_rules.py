"""Rules that forbid or force tokens: against transformers' processors, and by hand."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given
from transformers.generation import logits_process as theirs

from clearhead.checkpoints.generation_defaults import GenerationDefaults
from clearhead.generation.token_rules import (
    TokenRules,
    forbidden_tokens,
    make_rules,
    repeated_ends,
)

VOCAB = 11


@dataclass
class Text:
    """A text in the making."""

    prompt: list[int]
    ids: list[int] = field(default_factory=list)
    limit: int = 7


def forbidden(rules: TokenRules, *texts: Text) -> list[list[int]]:
    logits = torch.arange(VOCAB).float().expand(len(texts), VOCAB)
    found = rules.apply(logits, texts)
    assert torch.equal(logits[0], torch.arange(VOCAB).float())  # pure
    return [(row == -math.inf).nonzero().flatten().tolist() for row in found]


@given(st.lists(st.integers(0, 5), max_size=23), st.integers(1, 5))
def test_repeated_ngrams_are_transformers(ids: list[int], size: int) -> None:
    wanted = theirs.NoRepeatNGramLogitsProcessor(size)(
        torch.tensor([ids], dtype=torch.int64), torch.zeros(1, VOCAB)
    )
    banned = (wanted[0] == -math.inf).nonzero().flatten().tolist()
    assert sorted(set(repeated_ends(ids, size))) == banned


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=9),
    st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=3), min_size=1, max_size=9),
)
def test_bad_words_are_transformers(ids: list[int], words: list[list[int]]) -> None:
    wanted = theirs.NoBadWordsLogitsProcessor(words, eos_token_id=[2])
    if all(word == [2] for word in words):
        return  # an end token alone is allowed, and theirs refuses an empty list
    banned = (wanted(torch.tensor([ids]), torch.zeros(1, VOCAB))[0] == -math.inf).nonzero()
    defaults = GenerationDefaults(bad_words=tuple(map(tuple, words)))
    rules = make_rules(config(), defaults, ends=(2,))
    assert forbidden(rules, Text(ids[:1], ids[1:])) == [banned.flatten().tolist()]


def config() -> Any:
    from clearhead.models.config import ModelConfig

    return ModelConfig(
        kind="decoder", vocab=VOCAB, context=13, model=4, layers=1, heads=2, feed_forward=4
    )


def test_nothing_set_changes_nothing() -> None:
    logits = torch.zeros(1, VOCAB)
    assert TokenRules(ends=(2,)).apply(logits, [Text([3])]) is logits


def test_first_tokens() -> None:
    rules = TokenRules(suppressed=(5,), suppressed_first=(6, 99, -1))
    assert forbidden(rules, Text([3]), Text([3], [4])) == [[5, 6], [5]]
    forced = TokenRules(suppressed_first=(6,), forced_first=9)
    rest = [token for token in range(VOCAB) if token != 9]
    assert forbidden(forced, Text([3]), Text([3], [9]), Text([3, 4])) == [rest, [6], [6]]


def test_a_text_may_not_end_too_soon() -> None:
    rules = TokenRules(ends=(2, 7), min_tokens=2, min_length=5)
    texts = Text([3, 3, 3, 3], [4]), Text([3], [4, 4]), Text([3, 3, 3], [4, 4])
    assert forbidden(rules, *texts) == [[2, 7], [2, 7], []]


def test_the_last_token_is_forced_whatever_else_is_forbidden() -> None:
    rules = TokenRules(forced_last=(2, 7), bad_tokens=(7,), ends=(2,), min_tokens=99)
    rest = [token for token in range(VOCAB) if token not in (2, 7)]
    assert forbidden(rules, Text([3], [4] * 6), Text([3], [4] * 5)) == [rest, [2, 7]]


@pytest.mark.parametrize("size", [0, 3])
def test_rules_of_the_files(size: int) -> None:
    defaults = GenerationDefaults(
        bad_words=((2,), (5,), (5, 6)), suppressed=(3, 4), min_tokens=2, min_length=9
    )
    rules = make_rules(
        config(), defaults, ends=(2,), no_repeat_ngram_size=size, allowed=frozenset({4})
    )
    assert rules == TokenRules(
        ends=(2,), suppressed=(3,), bad_tokens=(5,), bad_words=((5, 6),), min_tokens=2,
        no_repeat_ngram_size=size,
    )  # fmt: skip


def test_only_marian_has_a_forbidden_token(tiny: Any) -> None:
    config = tiny("marian").loaded.config
    assert forbidden_tokens(config) == (config.pad,)
    assert forbidden_tokens(config.changed(eos=(config.pad,))) == ()
    assert forbidden_tokens(config.changed(pad=None)) == ()
    assert forbidden_tokens(tiny("bart").loaded.config) == ()
