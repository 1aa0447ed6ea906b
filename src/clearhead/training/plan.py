"""The plan of a run: everything that decides its result, in plain values that JSON can hold."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from clearhead.errors import ConfigError, InputError
from clearhead.models.config import ModelConfig
from clearhead.training.settings import TrainingSettings

MODEL_FIELDS = {field.name for field in dataclasses.fields(ModelConfig)}
SETTING_FIELDS = {field.name for field in dataclasses.fields(TrainingSettings)}
STORED = {"texts": "texts.jsonl", "validation": "validation.jsonl"}  # in the run's folder
STANDARD_INPUT = "-"  # in place of a path


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Texts (none: Python's own reference) or pairs, a size, and the fields that differ from it.

    ``start_from`` is a model to train further, instead of a size and a tokenizer. ``texts`` and
    ``validation`` are absolute paths; the two of ``STORED`` are files of the run's own folder.
    ``settings`` of a run that has begun are complete, so that another default changes nothing.
    """

    texts: tuple[str, ...] = ()
    pairs: bool = False
    chats: bool = False
    validation: tuple[str, ...] = ()  # files; none: a share of the texts is held out
    held_out: float = 0.1
    field: str | None = None  # of JSON Lines, that holds the text
    size: str = "tiny"
    tokenizer: str = "bpe"
    vocabulary: int | None = None
    start_from: str | None = None
    model: dict[str, Any] = dataclasses.field(default_factory=dict)
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    fingerprint: str | None = None  # of the data, so that a run continues on the same

    def __post_init__(self) -> None:
        if self.chats and (self.pairs or not self.texts or self.start_from is None):
            raise InputError(
                "chats come from a file of JSON Lines, and train a model further that has a chat "
                "template.",
                hint="--from MODEL (start_from=) with --chats FILE; --pairs is something else.",
            )
        if self.pairs and not self.texts:
            raise InputError("pairs come from two files, or from one with a tab in each line.")
        if (self.pairs or self.chats) and STANDARD_INPUT in (*self.texts, *self.validation):
            what = "pairs" if self.pairs else "chats"
            raise InputError(f"standard input is for texts; {what} come from files.")
        if not 0 < self.held_out <= 0.5:
            raise InputError(f"held_out must be above 0 and at most 0.5; got {self.held_out}.")

    def to_fields(self) -> dict[str, Any]:
        """As plain values."""
        return dataclasses.asdict(self)


def sorted_fields(changes: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Sort changes by name into fields of the model and settings of the training."""
    unknown = sorted(set(changes) - MODEL_FIELDS - SETTING_FIELDS)
    if unknown:
        raise ConfigError(
            f"neither a model nor its training has a field {', '.join(unknown)}.",
            hint=f"of the model: {', '.join(sorted(MODEL_FIELDS))}; "
            f"of the training: {', '.join(sorted(SETTING_FIELDS))}.",
        )
    model = {name: value for name, value in changes.items() if name in MODEL_FIELDS}
    return model, {name: value for name, value in changes.items() if name not in MODEL_FIELDS}
