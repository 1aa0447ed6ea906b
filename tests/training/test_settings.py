"""Settings say what is wrong with them."""

from __future__ import annotations

import pytest

from clearhead.errors import ConfigError
from clearhead.training.settings import RANGES, TrainingSettings


def test_a_run_has_one_length() -> None:
    for fields in ({}, {"steps": 3, "minutes": 1.0}):
        with pytest.raises(ConfigError, match="give one of them"):
            TrainingSettings(**fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("field", "value", "wanted"),
    [
        ("batch_tokens", 0, "must be at least 1; got 0"),
        ("batch_tokens", 2.5, "a whole number; got 2.5"),
        ("learning_rate", float("nan"), "learning_rate must be at least 1e-12"),
        ("label_smoothing", 1.5, "at most 0.99"),
        ("seed", True, "a whole number; got True"),
        ("schedule", "steep", "one of cosine, inverse-square-root, linear; got 'steep'"),
    ],
)
def test_bad_values(field: str, value: object, wanted: str) -> None:
    with pytest.raises(ConfigError, match=wanted):
        TrainingSettings.from_fields({"steps": 3, field: value})


def test_unknown_names_and_changes() -> None:
    with pytest.raises(ConfigError, match="no setting sheduel"):
        TrainingSettings.from_fields({"steps": 3, "sheduel": "cosine"})
    settings = TrainingSettings(steps=3).changed(steps=None, minutes=2.0)
    assert (settings.steps, settings.minutes) == (None, 2.0)


def test_texts_and_adapters() -> None:
    settings = TrainingSettings(steps=3, freeze="embeddings, first 2", lora=4)
    assert TrainingSettings.from_fields(vars(settings)) == settings
    for field, value, wanted in (("freeze", 5, "freeze must be"), ("lora", 0, "lora must be"),
                                 ("lora_targets", None, "lora_targets must be")):  # fmt: skip
        with pytest.raises(ConfigError, match=wanted):
            TrainingSettings.from_fields({"steps": 3, field: value})


OPTIONAL = {
    "patience": 2, "row": 5, "lora": 7, "lora_alpha": 11.0, "validation_tokens": 13,
    "keep_every": 17,
}  # fmt: skip
FULL = vars(TrainingSettings.from_fields({"steps": 3} | OPTIONAL))


def test_every_number_has_a_range() -> None:
    numbers = {name for name, value in FULL.items() if isinstance(value, int | float)}
    assert numbers | {"minutes"} == set(RANGES)
