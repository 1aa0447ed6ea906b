"""Patching: outputs of another text, against the model run on that text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import clearhead as ch
from clearhead.checkpoints.load import Loaded
from clearhead.text.characters import CharacterTokenizer

pytestmark = pytest.mark.usefixtures("one_thread")
TEXT, DONOR = "abcde", "abfde"


@pytest.fixture(scope="module")
def small() -> Loaded:
    config = ch.ModelConfig(
        kind="decoder", vocab=29, context=61, model=42, layers=3, heads=6, key_dim=10,
        feed_forward=67,
    )  # fmt: skip
    torch.manual_seed(5)
    model = ch.Decoder(config).eval().requires_grad_(False)
    return Loaded("small", Path(), model, config, CharacterTokenizer("abcdefgh"))


def logits(loaded: Loaded, text: str) -> Tensor:
    assert loaded.tokenizer is not None
    with torch.no_grad():
        found: Tensor = loaded.model(torch.tensor([loaded.tokenizer.encode(text)]))
    return found[0]


def test_everything_patched_is_the_donor_but_for_the_embedding(small: Loaded) -> None:
    """All layers and, at the last position, the same embedding: the prediction is the donor's."""
    places = [name for layer in range(3) for name in (f"L{layer}", f"L{layer}F")]
    with ch.patch(small, DONOR, places):
        patched = logits(small, TEXT)
    assert torch.allclose(patched[-1], logits(small, DONOR)[-1], atol=1e-5)
    assert not torch.allclose(patched[2], logits(small, DONOR)[2], atol=1e-3)


def test_one_head_at_one_position(small: Loaded) -> None:
    output: Any = small.model.get_submodule("stack.blocks.1.attention.output")
    kept: list[Tensor] = []
    handle = output.register_forward_hook(lambda _m, args, _o: kept.append(args[0][0]))
    logits(small, TEXT)
    logits(small, DONOR)
    with ch.patch(small, DONOR, "L1H3", position=4):
        logits(small, TEXT)
    handle.remove()
    own, donor, _, patched = kept[0], kept[1], kept[2], kept[-1]
    expected = own.clone()
    expected[4, 30:40] = donor[4, 30:40]
    assert torch.equal(patched, expected)


def test_the_same_text_changes_nothing(small: Loaded) -> None:
    before = logits(small, TEXT)
    with ch.patch(small, TEXT, ["L0H1", "L2F", "L1"]):
        assert torch.equal(logits(small, TEXT), before)
    assert torch.equal(logits(small, TEXT), before)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"donor": "abc"}, r"the text has 5 tokens and the donor 3"),
        ({"donor": "abc", "position": 4}, r"position 4 is not in both texts"),
        ({"at": "L7"}, r"no layer L7"),
        ({"position": -1}, r"position must be"),
        ({"donor": ""}, r"the text is empty|no token|gives no token"),
        ({"donor": None}, r"text"),
    ],
)
def test_bad_arguments_are_explained(small: Loaded, options: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"donor": DONOR, "at": "L0H1"} | options
    with pytest.raises(ch.ClearheadError, match=message), ch.patch(small, **given):
        logits(small, TEXT)
