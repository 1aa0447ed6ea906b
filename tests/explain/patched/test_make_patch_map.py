"""Shares against ``ch.patch``, one place at a time; a planted circuit is found with its size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

import clearhead as ch
from clearhead.checkpoints.load import Loaded
from clearhead.explain.patched import make_patch_map as module
from clearhead.explain.patched.make_patch_map import make_patch_map
from clearhead.text.characters import CharacterTokenizer
from tests.shared.patched_models import DONOR, TEXT, TOKENS, letters, shown_patch_map
from tests.shared.tiny_models import Tiny

pytestmark = pytest.mark.usefixtures("one_thread")


def target(loaded: Loaded, text: str) -> float:
    assert loaded.tokenizer is not None
    first, second = (loaded.tokenizer.encode(token)[0] for token in TOKENS)
    with torch.no_grad():
        logits = loaded.model(torch.tensor([loaded.tokenizer.encode(text)]))[0, -1].double()
    return float(logits[first] - logits[second])


def test_shares_are_those_of_patching_one_place_at_a_time() -> None:
    loaded, found = letters(), shown_patch_map()
    own, other = target(loaded, TEXT), target(loaded, DONOR)
    assert (found.target, found.donor_target) == pytest.approx((own, other), abs=1e-5)
    for name, share in ((one.name, one.share) for one in found.strongest):
        with ch.patch(loaded, DONOR, name):
            expected = (own - target(loaded, TEXT)) / (own - other)
        assert share == pytest.approx(expected, abs=1e-4), name
    last = len(found.columns) - 1  # "gh": two tokens
    for layer in range(3):
        for name, shares in ((f"L{layer}", found.attention), (f"L{layer}F", found.feed_forward)):
            with ch.patch(loaded, DONOR, name, position=10):
                at_last = (own - target(loaded, TEXT)) / (own - other)
            if layer == 2:  # behind it nothing reads the word's other tokens
                assert shares[layer, last] == pytest.approx(at_last, abs=1e-4), name
    assert found.exact and found.states[2, last] == pytest.approx(1, abs=1e-4)
    assert not found.states[:, 0].any() and found.states[0, 2] > 0.2  # before, and at, "cd/cx"


def test_masked_models_look_both_ways(tiny: Callable[[str], Tiny]) -> None:
    loaded = tiny("bert-masked").loaded
    ids = [5, 17, 29, 41, 53]
    found = make_patch_map(loaded, ids, [5, 17, 29, 41, 7], token=13, instead=29, position=1)
    assert found.exact and abs(found.states[0, 0]) > 0  # a word before the difference
    assert found.position == 1


def test_a_planted_head_carries_the_answer() -> None:
    """Only L1H2 moves anything to the last position: it copies there what "d" or "x" wrote."""
    tokenizer = CharacterTokenizer("abcdx")
    config = ch.ModelConfig(
        kind="decoder", vocab=tokenizer.size, context=16, model=16, layers=2, heads=4, key_dim=4,
        feed_forward=3, positions="none", tied=False,
    )  # fmt: skip
    model = ch.Decoder(config).eval().requires_grad_(False)
    for parameter in model.stack.blocks.parameters():
        parameter.zero_()
    for block in model.stack.blocks:
        part: Any = block
        for residual in (part.attention_residual, part.feed_forward_residual):
            residual.before.weight.fill_(1.0)
    rows = model.stack.embedding.tokens.weight
    rows.zero_()
    for letter, column in zip("abcdx", range(5), strict=True):
        rows[tokenizer.encode(letter)[0], column] = 4.0
    attention: Any = model.get_submodule("stack.blocks.1.attention")
    for column in (3, 4):  # the value of head 2 reads d and x, W_O writes them to columns 8 and 9
        attention.value.weight[2 * 4 + column - 3, column] = 1.0
        attention.output.weight[column + 5, 2 * 4 + column - 3] = 1.0
    head: Any = model.head
    head.weight.zero_()
    head.weight[tokenizer.encode("d")[0], 8] = head.weight[tokenizer.encode("x")[0], 9] = 1.0
    loaded = replace(letters(), model=model, config=config, tokenizer=tokenizer)
    found = make_patch_map(loaded, "abdc", "abxc")
    assert (found.token.text, found.instead.text) == ("d", "x")
    assert found.strongest[0].name == "L1H2" and found.strongest[0].share == pytest.approx(1)
    assert all(one.share == 0 for one in found.strongest[1:])
    words = make_patch_map(loaded, [tokenizer.encode(one)[0] for one in "abdc"],
                           [tokenizer.encode(one)[0] for one in "abxc"])  # fmt: skip
    assert words.states[0].tolist() == pytest.approx([0, 0, 1, 0], abs=1e-6)
    assert words.states[1].tolist() == pytest.approx([0, 0, 0, 1], abs=1e-6)
    assert words.attention[1].tolist() == pytest.approx([0, 0, 0, 1], abs=1e-6)
    assert not words.feed_forward.any()


def test_the_same_prediction_compares_what_changes_most() -> None:
    loaded = letters()
    found = make_patch_map(loaded, TEXT, DONOR, position="cd")
    assert found.token.id != found.instead.id
    assert found.target > found.donor_target


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"token": "a", "instead": "a"}, r"token and instead are the same token"),
        ({"token": "ab"}, r"token 'ab' is 2 tokens here"),
        ({"token": "a", "instead": 999}, r"instead 999: this vocabulary has ids 0 … "),
        ({"position": "zz"}, r"position: there is no word 'zz'"),
        ({"position": 9}, r"position"),
    ],
)
def test_bad_arguments_are_explained(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ch.ClearheadError, match=message):
        make_patch_map(letters(), TEXT, DONOR, **options)


def test_texts_that_are_too_long_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_TOKENS", 100)
    with pytest.raises(ch.ClearheadError, match=r"64 runs of 11 tokens would be needed"):
        make_patch_map(letters(), TEXT, DONOR)


def test_an_answer_that_does_not_change_is_refused() -> None:
    loaded = letters()
    assert loaded.tokenizer is not None
    model = ch.Decoder(loaded.config).eval().requires_grad_(False)
    for parameter in model.stack.blocks.parameters():
        parameter.zero_()  # no position knows another
    with pytest.raises(ch.ClearheadError, match="both texts give the same answer"):
        make_patch_map(replace(loaded, model=model), TEXT, DONOR, token="a", instead="b")
