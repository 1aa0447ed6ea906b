"""Beam search against transformers' on tiny models: the same texts with the same scores."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.generation.beam_search import beam_search, rank, score
from clearhead.generation.generate import generate
from tests.shared.tiny_models import ENCODER_DECODERS, token_ids

ENDS = tuple(range(0, 97, 3))


def stopping(loaded: Loaded, eos: tuple[int, ...] = ENDS) -> Loaded:
    """The same model with so many stop tokens that texts of random words end in time."""
    return Loaded(loaded.name, loaded.path, loaded.model, loaded.config.changed(eos=eos), None)


def theirs(
    model: Any,
    prompt: list[int],
    beams: int,
    penalty: float,
    count: int,
    eos: tuple[int, ...] = ENDS,
) -> list[tuple[list[int], float]]:
    from transformers import GenerationConfig

    config = stopping(model.loaded, eos).config
    more: dict[str, Any] = {}
    if model.name in ENCODER_DECODERS:
        more["decoder_start_token_id"] = config.start
    if model.name == "marian":
        more["bad_words_ids"] = [[config.pad]]
    settings = GenerationConfig(
        do_sample=False, num_beams=beams, num_return_sequences=beams, length_penalty=penalty,
        max_new_tokens=count, eos_token_id=list(config.eos), pad_token_id=0, bos_token_id=None,
        early_stopping=False, use_cache=False, return_dict_in_generate=True, output_scores=True,
        **more,
    )  # fmt: skip
    found = model.theirs.generate(torch.tensor([prompt]), generation_config=settings)
    skipped = 1 if model.name in ENCODER_DECODERS else len(prompt)
    rows = [_up_to_stop(row.tolist()[skipped:], config.eos) for row in found.sequences]
    return list(zip(rows, found.sequences_scores.tolist(), strict=True))


def _up_to_stop(ids: list[int], eos: tuple[int, ...]) -> list[int]:
    ends = [place for place, id in enumerate(ids) if id in eos]
    return ids[: ends[0] + 1] if ends else ids


@pytest.mark.parametrize("name", ["llama", "smollm", "gpt2", "t5", "bart", "marian"])
@pytest.mark.usefixtures("unchecked")
def test_same_texts_and_scores_as_transformers(tiny: Any, name: str) -> None:
    model, stopped = tiny(name), 0
    for seed, (beams, penalty) in enumerate([(2, 1.0), (3, 1.0), (5, 0.0), (4, 2.0), (5, -0.5)]):
        prompt = token_ids(7, seed=seed).tolist()
        wanted = theirs(model, prompt, beams, penalty, 13)
        got = beam_search(
            stopping(model.loaded),
            prompt,
            beams=beams,
            best=beams,
            max_tokens=13,
            length_penalty=penalty,
        )
        assert [list(text.ids) for text in got] == [ids for ids, _ in wanted]
        scores = [text.score for text in got]
        assert scores == pytest.approx([score for _, score in wanted], rel=1e-4, abs=1e-4)
        stopped += sum(text.finish == "stop-token" for text in got)
    assert stopped > 3  # texts that end by themselves were among them


@pytest.mark.usefixtures("unchecked")
def test_beams_of_marian_never_hold_padding(padding_marian: Any) -> None:
    prompt = token_ids(7).tolist()
    ends = tuple(range(0, 96, 3))  # padding, 96, is none of them
    wanted = theirs(padding_marian, prompt, 3, 1.0, 13, ends)
    loaded = stopping(padding_marian.loaded, ends)
    found = beam_search(loaded, prompt, beams=3, best=3, max_tokens=13)
    assert [list(text.ids) for text in found] == [ids for ids, _ in wanted]
    assert [text.score for text in found] == pytest.approx([score for _, score in wanted], rel=1e-4)
    assert all(padding_marian.loaded.config.pad not in text.ids for text in found)


def test_score_is_the_log_probability_of_the_text(tiny: Any) -> None:
    loaded = tiny("llama").loaded
    prompt = token_ids(5).tolist()
    for text in beam_search(loaded, prompt, beams=4, best=4, max_tokens=11, length_penalty=0.7):
        logits = loaded.model(torch.tensor([[*prompt, *text.ids]]))[0, 4:-1]
        logs = logits.double().log_softmax(-1).gather(1, torch.tensor(text.ids)[:, None])
        assert text.log_probability == pytest.approx(float(logs.sum()), rel=1e-4)
        assert text.score == pytest.approx(text.log_probability / len(text.ids) ** 0.7)


def test_one_beam_is_greedy(wordy: Loaded) -> None:
    events = generate(wordy, "the door", temperature=0, max_tokens=20)
    greedy = "".join(event.text for event in events)
    (best,) = beam_search(wordy, "the door", beams=1, max_tokens=20)
    assert best.text == greedy


def test_enough_beams_find_the_likeliest_text(tiny: Any) -> None:
    """Every text of two tokens, looked at one by one."""
    loaded = stopping(tiny("gpt2").loaded, ())
    found = beam_search(loaded, [5, 6], beams=97, max_tokens=2, length_penalty=0)
    with_first = torch.tensor([[5, 6, first] for first in range(97)])
    logs = loaded.model(with_first).double().log_softmax(-1)
    totals = logs[0, 1][:, None] + logs[:, 2]
    assert found[0].ids == divmod(int(totals.argmax()), 97)
    assert found[0].log_probability == pytest.approx(float(totals.max()), rel=1e-5)


def test_context_is_a_limit(wordy: Loaded) -> None:
    found = beam_search(wordy, [5] * 57, beams=3, best=3)
    assert all(len(text.ids) <= 5 for text in found)
    assert any(text.finish == "context" for text in found)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beams": 0}, "beams must be a whole number from 1 to 1000; got 0"),
        ({"beams": 2, "best": 3}, "best must be at most beams; got best=3 with beams=2"),
        ({"max_tokens": 0}, "max_tokens must be a whole number"),
        ({"early_stopping": 1}, r'early_stopping must be True, False or "never"; got 1'),
        ({"length_penalty": float("inf")}, "length_penalty must be a finite number; got inf"),
        ({"no_repeat_ngram_size": -1}, "no_repeat_ngram_size must be a whole number of 0 or more"),
        ({"beams": 10**9}, "beams must be a whole number from 1 to 1000; got 1000000000"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_what_is_refused(wordy: Loaded, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        beam_search(wordy, "the", **options)


def test_models_and_prompts_that_do_not_fit(wordy: Loaded, tiny: Any) -> None:
    with pytest.raises(InputError, match="no language-model head"):
        beam_search(tiny("bert").loaded, [5])
    with pytest.raises(InputError, match="62 tokens"):
        beam_search(wordy, [5] * 62)


def test_the_end_of_the_search(tiny: Any) -> None:
    """True takes the first texts, "never" searches longest; both may differ from False."""
    loaded, prompt = stopping(tiny("llama").loaded), token_ids(7, seed=2).tolist()
    options: dict[str, Any] = {"beams": 4, "best": 4, "max_tokens": 23, "length_penalty": 2.0}
    first, middle, last = (
        beam_search(loaded, prompt, early_stopping=when, **options)
        for when in (True, False, "never")
    )
    assert first[0].score <= middle[0].score <= last[0].score
    assert first[0].score < last[0].score


@pytest.mark.parametrize("penalty", [1e9, 1e300, -1e9, -1e300])
def test_a_length_penalty_beyond_all_floats(tiny: Any, penalty: float) -> None:
    """The limits: the longest texts, or the shortest; among them, the likeliest."""
    loaded, prompt = stopping(tiny("llama").loaded), token_ids(7).tolist()
    found = beam_search(loaded, prompt, beams=5, best=5, max_tokens=9, length_penalty=penalty)
    lengths = [len(text.ids) for text in found]
    assert lengths == sorted(lengths, reverse=penalty > 0)
    assert lengths[0] == (9 if penalty > 0 else min(lengths))
    logs = [text.log_probability for text in found if len(text.ids) == lengths[0]]
    assert logs == sorted(logs, reverse=True)
    assert all(text.score == (0.0 if penalty > 0 else -math.inf) or len(text.ids) == 1
               for text in found)  # fmt: skip


def test_rank_orders_as_score_does() -> None:
    texts = [(-3.0, 2), (-2.0, 5), (-7.5, 11), (0.0, 3), (1.5, 4), (0.5, 7)]
    for penalty in (-1.5, 0.0, 0.7, 2.0):
        ranks = [rank(log, length, penalty) for log, length in texts]
        scores = [score(log, length, penalty) for log, length in texts]
        order = range(len(texts))
        assert sorted(order, key=ranks.__getitem__) == sorted(order, key=scores.__getitem__)
