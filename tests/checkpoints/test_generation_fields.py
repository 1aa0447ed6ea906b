"""Every field of generation_config.json and every sampling key of GGUF files has one class."""

from __future__ import annotations

from typing import Any

import pytest
from gguf import constants
from transformers import GenerationConfig

from clearhead.checkpoints.generation_defaults import GGUF_SAMPLING, GenerationDefaults
from clearhead.checkpoints.generation_fields import (
    GGUF_ENDS,
    GGUF_HARMLESS,
    GGUF_READ,
    GGUF_REFUSED,
    HARMLESS,
    READ,
    REFUSED,
)
from clearhead.errors import InputError

FIELDS = sorted(GenerationConfig().__dict__)
KEYS = sorted(
    key.removeprefix(GGUF_SAMPLING)
    for name, key in vars(constants.Keys.General).items()
    if name.startswith("SAMPLING_")
)
# a value that is not neutral, for every field that is read or refused
VALUES: dict[str, Any] = {
    "bos_token_id": 5, "eos_token_id": [5, 7], "decoder_start_token_id": 5,
    "forced_bos_token_id": 5, "forced_eos_token_id": 5, "max_new_tokens": 5, "max_length": 5,
    "min_new_tokens": 5, "min_length": 5, "stop_strings": ["x"], "do_sample": True,
    "temperature": 0.5, "top_k": 5, "top_p": 0.5, "min_p": 0.5, "typical_p": 0.5,
    "repetition_penalty": 1.5, "no_repeat_ngram_size": 5, "bad_words_ids": [[5, 7]],
    "suppress_tokens": [5], "begin_suppress_tokens": [5], "num_beams": 5, "length_penalty": 0.5,
    "early_stopping": True, "renormalize_logits": True, "max_time": 1.5, "top_h": 0.5,
    "epsilon_cutoff": 0.5, "eta_cutoff": 0.5, "encoder_repetition_penalty": 1.5,
    "encoder_no_repeat_ngram_size": 5, "exponential_decay_length_penalty": [5, 1.5],
    "sequence_bias": [[[5], 1.5]], "token_healing": True, "guidance_scale": 1.5,
    "watermarking_config": {"bias": 2.0}, "penalty_alpha": 0.5, "dola_layers": "high",
    "diversity_penalty": 0.5, "num_beam_groups": 5, "constraints": [1], "force_words_ids": [[5]],
    "temp": 0.5, "penalty_repeat": 1.5, "penalty_last_n": 64, "sequence": "kpt",
    "xtc_probability": 0.5, "mirostat": 2,
}  # fmt: skip


@pytest.mark.parametrize("field", FIELDS)
def test_every_field_of_transformers_has_one_class(field: str) -> None:
    assert sum(field in table for table in (READ, HARMLESS, REFUSED)) == 1


@pytest.mark.parametrize("key", KEYS)
def test_every_sampling_key_of_gguf_has_one_class(key: str) -> None:
    assert sum(key in table for table in (GGUF_READ, GGUF_HARMLESS, GGUF_REFUSED)) == 1


def test_end_tokens_of_gguf_are_keys_of_the_format() -> None:
    keys = vars(constants.Keys.Tokenizer).values()
    assert all(f"tokenizer.ggml.{name}_token_id" in keys for name in GGUF_ENDS)


@pytest.mark.parametrize("field", sorted(READ))
def test_a_field_that_is_read_changes_something(field: str) -> None:
    found = GenerationDefaults.of({field: VALUES[field]})
    assert found != GenerationDefaults() and not found.unread and not found.refused


@pytest.mark.parametrize("field", sorted(HARMLESS))
def test_a_harmless_field_changes_nothing_and_says_why(field: str) -> None:
    assert GenerationDefaults.of({field: 3}) == GenerationDefaults()
    assert len(HARMLESS[field]) > 10


@pytest.mark.parametrize("field", sorted(REFUSED))
def test_a_refused_field_is_named_unless_it_is_neutral(field: str) -> None:
    assert GenerationDefaults.of({field: VALUES[field]}).refused[0][0] == field
    for neutral in (None, *REFUSED[field]):
        assert GenerationDefaults.of({field: neutral}) == GenerationDefaults()


@pytest.mark.parametrize("key", sorted(GGUF_REFUSED))
def test_a_refused_key_is_named_unless_it_is_neutral(key: str) -> None:
    name = GGUF_SAMPLING + key
    assert GenerationDefaults.of_gguf({name: VALUES[key]}).refused[0][0] == name
    for neutral in GGUF_REFUSED[key]:
        assert GenerationDefaults.of_gguf({name: neutral}) == GenerationDefaults()


@pytest.mark.parametrize(
    "value", ["x", [], {}, [[]], {"a": 1}, -0.5, [None], True, 10**400], ids=str
)
@pytest.mark.parametrize("field", sorted(READ))
@pytest.mark.usefixtures("unchecked")
def test_wrong_values_are_named_or_read(field: str, value: Any) -> None:
    """Whatever a file holds: a checked value, or our error with the field's name."""
    try:
        found = GenerationDefaults.of({field: value})
    except InputError as error:
        assert field in error.message
    else:
        assert isinstance(found, GenerationDefaults)
