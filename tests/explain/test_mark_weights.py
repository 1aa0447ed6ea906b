from __future__ import annotations

import pytest
import torch

import clearhead as ch
from clearhead.errors import InputError
from clearhead.explain.mark_weights import keeps_values, visible_between, weights_between
from clearhead.explain.pictures import Mark
from clearhead.trace.head_view import HeadView

# Five tokens as three words: tokens 1 and 2 are one, tokens 3 and 4 another.
WORDS = [Mark(str(i), 0, 0, False, tokens) for i, tokens in enumerate([(0,), (1, 2), (3, 4)])]


def watched(*, values: bool = True, causal: bool = False) -> HeadView:
    torch.manual_seed(3)
    module = ch.MultiHeadAttention(15, 3, key_dim=7, value_dim=5, causal=causal).eval()
    with torch.no_grad(), ch.watch(module, values=values) as seen:
        module(torch.randn(1, 5, 15))
    return seen["L0"]


def test_into_a_word_is_summed_and_out_of_it_averaged() -> None:
    view = watched()
    whole, words = view.weights(), weights_between(view, WORDS, WORDS)
    assert words.shape == (3, 3, 3)
    expected = (whole[2, 1, 3] + whole[2, 1, 4] + whole[2, 2, 3] + whole[2, 2, 4]) / 2
    assert float(words[2, 1, 2]) == pytest.approx(float(expected))
    assert words.sum(dim=2) == pytest.approx(torch.ones(3, 3), abs=1e-5)


def test_rows_need_not_follow_each_other() -> None:
    view = watched()
    some = weights_between(view, [WORDS[2], WORDS[0]], WORDS)
    assert torch.allclose(some, weights_between(view, WORDS, WORDS)[:, [2, 0]], atol=1e-6)


def test_weights_times_lengths_of_values() -> None:
    view = watched()
    tokens = [Mark(str(i), 0, 0, False, (i,)) for i in range(5)]
    found = weights_between(view, tokens, tokens, "weight·‖v‖")
    assert view.record.value is not None
    lengths = view.record.value[0, 1].norm(dim=1)
    row = view.weights()[1, 3] * lengths
    assert torch.allclose(found[1, 3], row / row.sum(), atol=1e-6)


def test_values_are_needed_for_their_lengths() -> None:
    view = watched(values=False)
    assert not keeps_values(view) and keeps_values(watched())
    with pytest.raises(InputError, match=r"weight·‖v‖ needs the values, and this trace"):
        weights_between(view, WORDS, WORDS, "weight·‖v‖")


def test_a_word_is_visible_if_one_of_its_tokens_is() -> None:
    assert visible_between(watched(), WORDS, WORDS).all()
    causal = visible_between(watched(causal=True), WORDS, WORDS)
    assert causal.tolist() == [[True, False, False], [True, True, False], [True, True, True]]
