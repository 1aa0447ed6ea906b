"""What a model's files say about generation: folders, older folders, GGUF, transformers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import clearhead as ch
from clearhead.checkpoints.generation_defaults import FILE, GenerationDefaults
from clearhead.checkpoints.generation_fields import READ
from clearhead.errors import CheckpointError
from tests.shared.tiny_models import make_reference


def test_sampling_brings_the_defaults_of_the_format() -> None:
    found = GenerationDefaults.of({"do_sample": True, "top_p": 0.9})
    assert (found.temperature, found.top_k, found.top_p) == (1.0, 50, 0.9)
    found = GenerationDefaults.of({"do_sample": True, "temperature": 0.6, "top_k": 0})
    assert (found.temperature, found.top_k) == (0.6, None)


def test_no_sampling_is_greedy_and_needs_no_filters() -> None:
    content = {"do_sample": False, "temperature": 0.6, "top_k": 20, "eta_cutoff": 0.5}
    assert GenerationDefaults.of(content) == GenerationDefaults(temperature=0.0)


def test_without_a_word_about_sampling_what_is_there_is_read() -> None:
    assert GenerationDefaults.of({"top_k": 20}) == GenerationDefaults(top_k=20)
    assert GenerationDefaults.of({"eos_token_id": 7}) == GenerationDefaults(eos=(7,))


def test_fields_that_nobody_knows_are_listed() -> None:
    assert GenerationDefaults.of({"top_k": 20, "lang_to_id": {}}).unread == ("lang_to_id",)


def test_special_tokens_stay_without_settings() -> None:
    found = GenerationDefaults.of({"bos_token_id": 3, "eos_token_id": [5], "top_k": 20})
    assert found.special_tokens == GenerationDefaults(bos=3, eos=(5,))
    assert found.limits_length is False
    assert GenerationDefaults(max_length=9).limits_length


def test_a_folder(tiny: Any, tmp_path: Path) -> None:
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((tiny("llama").folder / name).read_bytes())
    content = {"eos_token_id": [2, 41], "temperature": 0.6, "do_sample": True, "top_k": 20}
    (tmp_path / FILE).write_text(json.dumps(content))
    loaded = ch.load(tmp_path)
    assert loaded.generation == GenerationDefaults(
        source=FILE, eos=(2, 41), temperature=0.6, top_k=20
    )
    assert loaded.config.eos == (2,)
    assert ch.load(tmp_path / "model.safetensors").generation == loaded.generation


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "should hold a JSON object"),
        ("{", "is not valid JSON"),
        ('{"temperature": "hot"}', "temperature must be a finite number of 0 or more; got 'hot'"),
        ('{"eos_token_id": [[2]]}', "eos_token_id must be a whole number"),
        ('{"bad_words_ids": [[]]}', "bad_words_ids must be lists of token ids, none of them empty"),
        ('{"decoder_start_token_id": [2, 3]}', "must be one token; got 2, one for each text"),
        ('{"stop_strings": [""]}', "stop_strings must be a text or a list of texts"),
        ('{"early_stopping": "now"}', "early_stopping must be True or False"),
    ],
)
def test_a_broken_file_is_named(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / FILE).write_text(content)
    with pytest.raises(CheckpointError, match=message) as caught:
        GenerationDefaults.of_folder(tmp_path)
    assert FILE in str(caught.value)


def test_older_folders_have_it_in_config_json(tmp_path: Path) -> None:
    content = {
        "num_beams": 4, "forced_bos_token_id": 0, "no_repeat_ngram_size": 3, "max_length": 142,
        "eos_token_id": 2, "d_model": 16, "early_stopping": True, "length_penalty": None,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(content))
    assert GenerationDefaults.of_folder(tmp_path) == GenerationDefaults(
        source="config.json", beams=4, forced_first=0, no_repeat_ngram_size=3, max_length=142,
        early_stopping=True,
    )  # fmt: skip
    (tmp_path / FILE).write_text("{}")  # the newer file says all
    assert GenerationDefaults.of_folder(tmp_path) == GenerationDefaults(source=FILE)
    assert GenerationDefaults.of_folder(tmp_path / "none") == GenerationDefaults()


def test_a_model_of_transformers() -> None:
    from transformers import GenerationConfig

    theirs = make_reference("llama")
    assert not repr(ch.load(theirs).generation).count(",")  # only where it comes from
    theirs.generation_config = GenerationConfig(eos_token_id=[3, 5], top_k=20, do_sample=True)
    found = ch.load(theirs).generation
    assert (found.eos, found.top_k, found.temperature) == ((3, 5), 20, 1.0)


def test_gguf_keys() -> None:
    found = GenerationDefaults.of_gguf(
        {
            "tokenizer.ggml.eos_token_id": 2, "tokenizer.ggml.eot_token_id": 7,
            "tokenizer.ggml.eom_token_id": 2, "tokenizer.ggml.fim_pad_token_id": 11,
            "tokenizer.ggml.padding_token_id": 13, "general.sampling.temp": 0.5,
            "general.sampling.top_k": 20, "general.sampling.top_p": 0.75,
            "general.sampling.min_p": 0.25, "general.sampling.penalty_repeat": 1.5,
            "general.sampling.novelty": 1,
        }
    )  # fmt: skip
    assert found == GenerationDefaults(
        eos=(2, 7, 11), temperature=0.5, top_k=20, top_p=0.75, min_p=0.25,
        repetition_penalty=1.5, unread=("general.sampling.novelty",),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        ({"temp": -1.0, "top_k": 0}, GenerationDefaults(temperature=0.0)),
        ({"top_k": -1, "top_p": 2.0, "min_p": -1.0}, GenerationDefaults(top_p=1.0, min_p=0.0)),
        ({"top_p": 0.0}, GenerationDefaults(top_k=1)),
        ({"penalty_repeat": 1.5, "penalty_last_n": 0}, GenerationDefaults()),
        ({"penalty_repeat": 1.5, "penalty_last_n": -1}, GenerationDefaults(repetition_penalty=1.5)),
        ({"penalty_repeat": 1.0, "penalty_last_n": 64}, GenerationDefaults(repetition_penalty=1.0)),
        (
            {"penalty_repeat": 1.5, "penalty_last_n": 64},
            GenerationDefaults(
                repetition_penalty=1.5, refused=(("general.sampling.penalty_last_n", "64"),)
            ),
        ),
    ],
)
def test_values_of_llama_cpp(content: dict[str, Any], wanted: GenerationDefaults) -> None:
    metadata = {f"general.sampling.{key}": value for key, value in content.items()}
    assert GenerationDefaults.of_gguf(metadata) == wanted


def test_a_broken_gguf_value_is_named() -> None:
    with pytest.raises(CheckpointError, match=r"x.gguf .* general.sampling.temp must be"):
        GenerationDefaults.of_gguf({"general.sampling.temp": "hot"}, "x.gguf")


GIVEN: dict[str, Any] = {
    "bos_token_id": 1, "eos_token_id": [2, 7], "decoder_start_token_id": 3,
    "forced_bos_token_id": 4, "forced_eos_token_id": [5], "max_new_tokens": 9, "max_length": 30,
    "min_new_tokens": 1, "min_length": 2, "stop_strings": ["a", "b"], "do_sample": True,
    "temperature": 0.5, "top_k": 12, "top_p": 0.75, "min_p": 0.125, "typical_p": 0.5,
    "repetition_penalty": 1.25, "no_repeat_ngram_size": 3, "bad_words_ids": [[1, 2], [3]],
    "suppress_tokens": [4, 5], "begin_suppress_tokens": [6], "num_beams": 4,
    "length_penalty": 0.5, "early_stopping": "never", "renormalize_logits": True,
}  # fmt: skip


def test_every_field_comes_back() -> None:
    """As it was read, and as our own values say it where they came from another format."""
    assert GIVEN.keys() == READ.keys()
    read = GenerationDefaults.of(GIVEN | {"guidance_scale": 2.5, "lang_to_id": {"a": 1}})
    assert read.as_fields() == GIVEN | {"guidance_scale": 2.5, "lang_to_id": {"a": 1}}
    ours = replace(GenerationDefaults.of(GIVEN), content=None)
    assert GenerationDefaults.of(ours.as_fields()) == ours
    assert GenerationDefaults().as_fields() == {}


def test_saving_keeps_the_settings(tiny: Any, tmp_path: Path) -> None:
    source = tmp_path / "source"
    ch.save(ch.load(tiny("llama").folder).model, source)
    content = {"do_sample": True, "top_p": 0.9, "eos_token_id": [2, 3], "guidance_scale": 1.5}
    (source / FILE).write_text(json.dumps(content))
    loaded = ch.load(source)
    copy = ch.save(loaded.model, tmp_path / "copy", generation=loaded.generation)
    assert json.loads((copy / FILE).read_text()) == content
    assert ch.load(copy).generation == loaded.generation
    assert not (ch.save(loaded.model, tmp_path / "bare", generation=GenerationDefaults()) / FILE
                ).exists()  # fmt: skip


def test_what_a_gguf_file_says_is_saved() -> None:
    metadata = {"tokenizer.ggml.eos_token_id": 5, "general.sampling.temp": 0.5,
                "general.sampling.mirostat": 2}  # fmt: skip
    read = GenerationDefaults.of_gguf(metadata)
    fields = read.as_fields()
    assert fields == {"eos_token_id": [5], "temperature": 0.5, "general.sampling.mirostat": "2"}
    assert GenerationDefaults.of(fields).unread == ("general.sampling.mirostat",)
