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

from clearhead.checkpoints.generation_defaults import FILE, GenerationDefaults
from clearhead.checkpoints.load import Loaded
from clearhead.generation.beam_search import beam_search
from clearhead.generation.generate import generate
from tests.shared.tiny_models import DECODERS, ENCODER_DECODERS, token_ids

ENDS = list(range(0, 90, 11))
COUNT = 17


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
    text = found[1 if model.name in ENCODER_DECODERS else len(prompt) :]
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
    if name in ENCODER_DECODERS:
        content["decoder_start_token_id"] = draw.choice((2, 50, 96))
    choices: dict[str, Callable[[], Any]] = {
        "no_repeat_ngram_size": lambda: draw.choice((0, 1, 2, 3)),
        "repetition_penalty": lambda: draw.choice((0.7, 1.3, 2.0)),
        "suppress_tokens": some,
        "begin_suppress_tokens": some,
        "bad_words_ids": lambda: [[id] for id in some()] + [some()[:2] for _ in range(40)],
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


SEEDS = 9
