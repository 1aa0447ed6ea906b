"""What a call uses: the caller's settings, the files', ours; token for token as transformers."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import clearhead as ch
from clearhead.checkpoints.generation_defaults import FILE, GenerationDefaults
from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.generation.beam_search import beam_search
from clearhead.generation.file_settings import (
    file_defaults,
    first_given,
    given_or_file,
    token_limit,
)
from clearhead.generation.generate import generate
from tests.shared import gguf_models
from tests.shared.tiny_models import DECODERS, ENCODER_DECODERS, make_reference, token_ids

ENDS = list(range(0, 90, 11))
COUNT = 17
SEEDS = 5


def with_file(model: Any, content: dict[str, Any], folder: Path) -> tuple[Loaded, Any]:
    """The same model with this generation_config.json: loaded by us and by transformers."""
    from transformers import GenerationConfig

    path = folder / FILE
    path.write_text(json.dumps(content))
    theirs = GenerationConfig.from_pretrained(folder)
    return replace(model.loaded, generation=GenerationDefaults.of_folder(folder)), theirs


def their_ids(model: Any, config: Any, prompt: list[int], ends: list[int]) -> list[int]:
    """What transformers' own generate says after a prompt, without its padding."""
    model.theirs.generation_config = config
    try:
        found = model.theirs.generate(torch.tensor([prompt]), use_cache=False)[0].tolist()
    finally:
        from transformers import GenerationConfig

        model.theirs.generation_config = GenerationConfig()
    text: list[int] = found[1 if model.name in ENCODER_DECODERS else len(prompt) :]
    last = next((place for place, id in enumerate(text) if id in ends), len(text))
    return text[: last + 1]


def our_ids(loaded: Loaded, prompt: list[int]) -> list[int]:
    """What we say: beams where the file asks for them, one token after another elsewhere."""
    if (loaded.generation.beams or 1) > 1:
        return list(beam_search(loaded, prompt)[0].ids)
    return [event.token for event in generate(loaded, prompt) if event.token is not None]


def drawn_file(name: str, seed: int) -> dict[str, Any]:
    """A random generation_config.json without sampling."""
    draw = random.Random(f"{name}/{seed}")

    def some() -> list[int]:
        return draw.sample(range(90), draw.choice((1, 7, 23)))

    content: dict[str, Any] = {
        "do_sample": False, "eos_token_id": ENDS, "pad_token_id": 96, "bos_token_id": 1,
        "max_new_tokens": COUNT, "transformers_version": "5.0.0",
    }  # fmt: skip
    if name == "marian":  # what we know without a file, transformers' files say
        content["bad_words_ids"] = [[96]]
    if name in ENCODER_DECODERS:
        content["decoder_start_token_id"] = draw.choice((2, 50, 96))
    choices: dict[str, Callable[[], Any]] = {
        "no_repeat_ngram_size": lambda: draw.choice((0, 1, 2, 3)),
        "repetition_penalty": lambda: draw.choice((0.7, 1.3, 2.0)),
        "suppress_tokens": some,
        "begin_suppress_tokens": some,
        "bad_words_ids": lambda: [[96], *([id] for id in some()), *(some()[:2] for _ in some())],
        "min_length": lambda: draw.choice((0, 9, 15)),
        "min_new_tokens": lambda: draw.choice((0, 5, 11)),
        "forced_bos_token_id": lambda: draw.randrange(90),
        "forced_eos_token_id": lambda: draw.choice((0, 11, [22])),  # of two, beams tie
        "renormalize_logits": lambda: draw.random() < 0.5,
    }
    content |= {field: make() for field, make in choices.items() if draw.random() < 0.4}
    # transformers refuses a forced token that is suppressed
    never = set(content.get("suppress_tokens", ()))
    content["suppress_tokens"] = sorted(never - {0, 11, 22, content.get("forced_bos_token_id")})
    if draw.random() < 0.7:
        content["num_beams"] = draw.choice((2, 3, 5))
        content["early_stopping"] = draw.choice((True, False, "never"))
        content["length_penalty"] = draw.choice((-1.0, 0.0, 0.6, 1.0, 2.0))
    if "min_length" in content and draw.random() < 0.5:
        del content["max_new_tokens"]
        content["max_length"] = COUNT + (1 if name in ENCODER_DECODERS else 7)
    return content


@pytest.mark.parametrize("name", [*DECODERS, *ENCODER_DECODERS])
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.usefixtures("unchecked")
def test_every_family_says_what_transformers_says(tiny: Any, name: str, tmp_path: Path) -> None:
    model = tiny(name)
    for seed in range(SEEDS):
        content = drawn_file(name, seed)
        loaded, config = with_file(model, content, tmp_path)
        prompt = token_ids(7, seed=seed).tolist()
        wanted = their_ids(model, config, prompt, content["eos_token_id"])
        assert our_ids(loaded, prompt) == wanted, content


def tokens(events: Any) -> list[int]:
    return [event.token for event in events if event.token is not None]


def saying(loaded: Loaded, **fields: Any) -> Loaded:
    """The same model whose files say this."""
    return replace(loaded, generation=GenerationDefaults.of(fields, FILE))


def test_explicit_settings_win(tiny: Any) -> None:
    loaded, prompt = tiny("llama").loaded, token_ids(7).tolist()
    file = saying(
        loaded, do_sample=True, temperature=3.0, top_k=5, repetition_penalty=1.7,
        no_repeat_ngram_size=2, max_new_tokens=11, eos_token_id=[96],
    )  # fmt: skip
    plain = saying(loaded, eos_token_id=[96])
    by_file = tokens(generate(file, prompt, seed=3))
    by_hand = tokens(
        generate(
            plain, prompt, seed=3, temperature=3.0, top_k=5, repetition_penalty=1.7,
            no_repeat_ngram_size=2, max_tokens=11,
        )
    )  # fmt: skip
    assert by_file == by_hand and len(by_file) == 11
    explicit: dict[str, Any] = {
        "temperature": 0, "repetition_penalty": 1.0, "no_repeat_ngram_size": 0, "max_tokens": 13,
    }  # fmt: skip
    greedy = tokens(generate(plain, prompt, **explicit))
    assert tokens(generate(file, prompt, **explicit)) == greedy != by_file
    ours: dict[str, Any] = {"file_settings": False, "seed": 5}
    assert tokens(generate(file, prompt, **ours)) == tokens(generate(plain, prompt, **ours))
    assert len(tokens(generate(file, prompt, **ours))) > 13


def test_the_same_seed_gives_the_same_text(tiny: Any) -> None:
    file = saying(tiny("llama").loaded, do_sample=True, top_p=0.9)
    first, second = (tokens(generate(file, [5, 6], seed=1, max_tokens=9)) for _ in range(2))
    assert first == second


def test_end_tokens_of_the_file_replace_those_of_the_config(tiny: Any) -> None:
    loaded, prompt = tiny("llama").loaded, token_ids(7).tolist()
    greedy = tokens(generate(loaded, prompt, temperature=0, max_tokens=9))
    file = saying(loaded, eos_token_id=[96, greedy[3]])
    for settings in (True, False):
        events = list(generate(file, prompt, temperature=0, max_tokens=9, file_settings=settings))
        assert tokens(events) == greedy[: greedy.index(greedy[3]) + 1]
        assert events[-1].finish == "stop-token"
    (best,) = beam_search(file, prompt, beams=1, max_tokens=9)
    assert best.ids == tuple(greedy[: greedy.index(greedy[3]) + 1])


def test_stop_strings_of_the_file(wordy: Loaded) -> None:
    text = "".join(event.text for event in generate(wordy, "the", temperature=0, max_tokens=20))
    stop = text[5:8]
    events = list(generate(saying(wordy, stop_strings=stop), "the", temperature=0, max_tokens=20))
    assert "".join(event.text for event in events) == text[: text.index(stop)]
    assert events[-1].finish == "stop-string"
    free = generate(saying(wordy, stop_strings=stop), "the", temperature=0, max_tokens=20, stop=())
    assert "".join(event.text for event in free) == text


@pytest.mark.parametrize("call", [generate, beam_search])
def test_what_is_not_offered_is_refused_by_name(wordy: Loaded, call: Any) -> None:
    file = saying(wordy, guidance_scale=1.5, max_time=2.0)
    message = r"generation_config.json asks for max_time=2.0, guidance_scale=1.5, which is not"
    with pytest.raises(InputError, match=message):
        call(file, "the")
    assert list(call(file, "the", max_tokens=2, file_settings=False))


def test_length_with_the_prompt(tiny: Any) -> None:
    loaded = saying(tiny("llama").loaded, max_length=13, eos_token_id=96)
    events = list(generate(loaded, [[5] * 7, [5, 6]], temperature=0))
    assert [sum(e.token is not None for e in events if e.row == row) for row in (0, 1)] == [6, 11]
    with pytest.raises(InputError, match=r"13 tokens, and generation_config.json says max_length"):
        generate(loaded, [5] * 13)
    assert len(tokens(generate(loaded, [5] * 13, max_tokens=3))) == 3


def test_which_value_is_used(wordy: Loaded) -> None:
    assert first_given(None, 0, 3, otherwise=5) == 0
    assert first_given(None, None, otherwise=5) == 5
    given = {"top_k": None, "top_p": 0.5, "temperature": None, "min_p": None}
    found = given_or_file(given, GenerationDefaults(top_k=3, top_p=0.75), {"temperature": 0.7})
    assert found == {"top_k": 3, "top_p": 0.5, "temperature": 0.7}
    assert token_limit(7, GenerationDefaults(max_tokens=3), 2) == 7
    assert token_limit(None, GenerationDefaults(max_tokens=3, max_length=9), 2) == 3
    assert token_limit(None, GenerationDefaults(max_length=9), 2) == 7
    assert token_limit(None, GenerationDefaults(), 2) == 128
    file = saying(wordy, eos_token_id=3, top_k=5)
    assert file_defaults(file, True) is file.generation
    assert file_defaults(file, False) == GenerationDefaults(eos=(3,))


def test_a_gguf_file_is_obeyed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = gguf_models._write_vocabulary

    def with_sampling(writer: Any) -> None:
        plain(writer)
        writer.add_eot_token_id(7)
        writer.add_sampling_temp(0.0)
        writer.add_sampling_penalty_repeat(1.5)

    monkeypatch.setattr(gguf_models, "_write_vocabulary", with_sampling)
    path = gguf_models.write_gguf(make_reference("llama"), tmp_path / "tiny.gguf", "llama")
    loaded = ch.load(path)
    assert loaded.generation == GenerationDefaults(
        source=str(path), eos=(2, 7), temperature=0.0, repetition_penalty=1.5
    )
    same = tokens(generate(loaded, [5, 6], max_tokens=9))
    explicit: dict[str, Any] = {"temperature": 0, "repetition_penalty": 1.5, "max_tokens": 9}
    assert same == tokens(generate(loaded, [5, 6], **explicit, file_settings=False))
