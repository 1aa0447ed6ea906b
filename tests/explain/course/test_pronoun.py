"""One head from a word, in two sentences: q and k give the weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import clearhead as ch
from clearhead.errors import InputError
from clearhead.explain.course.packed import unpacked
from clearhead.explain.course.pronoun import pronoun, token_of
from clearhead.explain.course.tokens import tokenizer_of
from tests.shared.explain_models import decoder, passage

TEXTS = ("the students opened their books", "the books opened their students")


def test_q_and_k_give_the_weights_of_the_run() -> None:
    loaded = decoder()
    found = pronoun(loaded, TEXTS, "their", ("students", "books"), "L1H3")
    for text, one in zip(TEXTS, found["sentences"], strict=True):
        query, keys = unpacked(one["query"]), unpacked(one["keys"]).reshape(-1, one["width"])
        scores = keys.astype(np.float64) @ query * one["scale"]
        weights = np.exp(scores - scores.max())
        with ch.watch(loaded) as seen, torch.no_grad():
            loaded.model(torch.tensor([tokenizer_of(loaded).encode(text)]))
        row = one["row"]
        wanted = seen["L1H3"].row(row)[: row + 1].double().numpy()
        assert np.allclose(weights / weights.sum(), wanted, atol=1e-6)
        assert np.allclose(one["weights"], wanted, atol=1e-6)
        place = token_of(text, tokenizer_of(loaded).tokens(text), "students")
        for layer, head in ((0, 2), (1, 1)):
            weight = float(seen[f"L{layer}H{head}"].row(row)[place])
            assert abs(one["heads"]["students"][layer][head] - weight) < 1e-4
        assert one["proof"].startswith("exact")


def test_a_word_of_several_tokens_is_its_last_one() -> None:
    made = passage(["The", " st", "udents", ",", " st", "ud"])
    assert token_of(made.text, made.tokens, "students") == 2
    assert token_of(made.text, made.tokens, "stud") == 5
    with pytest.raises(InputError, match="a word of the text is wanted; 'udents' is not in"):
        token_of(made.text, made.tokens, "udents")
