"""Speculation: fewer steps, the same text."""

from __future__ import annotations

from typing import Any

import pytest

from clearhead.checkpoints.load import Loaded
from clearhead.generation.generate import generate
from clearhead.generation.session import Session
from clearhead.generation.speculative_runner import NGrams, SpeculativeRunner
from clearhead.generation.torch_runner import TorchRunner
from tests.shared.tiny_models import assert_same, token_ids


def ids_of(model: Loaded | Session, prompt: list[int], **options: Any) -> list[int]:
    events = generate(model, prompt, **options)
    return [event.token for event in events if event.token is not None]


@pytest.mark.parametrize(
    "more",
    [
        {"temperature": 0},
        {"temperature": 0.3, "seed": 5},
        {"temperature": 0, "frequency_penalty": 3},
    ],
)
@pytest.mark.parametrize("name", ["llama", "gpt2", "t5", "bart"])
@pytest.mark.usefixtures("unchecked")
def test_the_text_is_the_same(tiny: Any, name: str, more: dict[str, Any]) -> None:
    loaded, prompt = tiny(name).loaded, token_ids(9).tolist() * 3
    options: dict[str, Any] = {"max_tokens": 23, **more}
    plain = ids_of(loaded, prompt, **options)
    assert ids_of(loaded, prompt, speculate=8, **options) == plain


@pytest.mark.parametrize("max_drafts", [1, 4, 16])
def test_a_text_that_repeats_takes_fewer_steps(tiny: Any, max_drafts: int) -> None:
    """Whoever chooses the tokens: the logits are those of a runner without guesses."""
    model = tiny("llama").loaded.model
    plain, ahead = TorchRunner(model), SpeculativeRunner(TorchRunner(model), max_drafts)
    prompt, text = [5, 6, 7, 8, 9], [*[5, 6, 7, 8, 9] * 6, 40, 41, *[6, 7, 8] * 4]
    assert_same(ahead.extend([prompt]), plain.extend([prompt]))
    for place, token in enumerate(text):
        assert_same(ahead.extend([[token]]), plain.extend([[token]]))
        assert ahead.lengths == [len(prompt) + place + 1] == [ahead.length]
    assert ahead.steps < (0.75 if max_drafts == 1 else 0.5) * len(text)


def test_without_a_guess_it_is_a_plain_runner(tiny: Any) -> None:
    model = tiny("llama").loaded.model
    ahead = SpeculativeRunner(TorchRunner(model), 8)
    for token in range(10, 20):
        ahead.extend([[token]])
    assert ahead.steps == 10
    ahead.crop(4)
    assert_same(ahead.extend_all([7, 8]), TorchRunner(model).extend_all([10, 11, 12, 13, 7, 8])[4:])


@pytest.mark.usefixtures("unchecked")
def test_up_to_the_contexts_end(wordy: Loaded) -> None:
    prompt = [5, 6, 7] * 16
    options: dict[str, Any] = {"temperature": 0, "max_tokens": 30, "logit_bias": {2: -99.0}}
    plain = list(generate(wordy, prompt, **options))
    ahead = list(generate(wordy, prompt, speculate=16, **options))
    assert [e.token for e in ahead] == [e.token for e in plain]
    assert ahead[-1].finish == "context"
    sliding = ids_of(wordy, prompt, slide=True, **options)
    assert ids_of(wordy, prompt, slide=True, speculate=16, **options) == sliding


@pytest.mark.usefixtures("unchecked")
def test_with_a_session(tiny: Any) -> None:
    loaded = tiny("llama").loaded
    session, prompt = Session(loaded), token_ids(9).tolist() * 2
    options: dict[str, Any] = {"temperature": 0, "max_tokens": 20, "speculate": 8}
    first = ids_of(session, prompt, **options)
    longer = [*prompt, *first, 9, 8]
    options["speculate"] = 0
    wanted = ids_of(loaded, longer, **options)
    assert ids_of(session, longer, speculate=8, temperature=0, max_tokens=20) == wanted
    assert ids_of(session, longer, **options) == wanted  # wrong guesses are not taken for known


# The drafts


def test_what_followed_last_time() -> None:
    past = NGrams([1, 2, 3, 4, 5, 9, 1, 2, 3])
    assert past.draft(3) == [4, 5, 9]
    assert past.draft(1) == [4]


def test_longer_matches_and_later_ones_come_first() -> None:
    assert NGrams([7, 2, 3, 4, 8, 2, 3, 5, 7, 2, 3]).draft(1) == [4]  # 7 2 3, not the later 2 3
    assert NGrams([7, 2, 3, 4, 8, 2, 3, 5, 9, 2, 3]).draft(1) == [5]


def test_a_draft_that_reaches_the_end_goes_round() -> None:
    assert NGrams([1, 2, 1, 2, 1]).draft(5) == [2, 1, 2, 1, 2]
    assert NGrams([4, 4, 4, 4]).draft(3) == [4, 4, 4]


def test_nothing_repeats() -> None:
    for ids in ([], [1], [1, 1], [1, 2, 3, 4, 5]):
        assert NGrams(ids).draft(4) == []


def test_piece_by_piece_is_the_same() -> None:
    ids = [3, 1, 4, 1, 5, 3, 1, 4, 1, 5, 3, 1]
    one_by_one = NGrams()
    for id in ids:
        one_by_one.extend([id])
    assert one_by_one.draft(4) == NGrams(ids).draft(4) == [4, 1, 5, 3]
