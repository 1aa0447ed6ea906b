"""The plan of a run: everything that decides its result, in plain values that JSON can hold."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from clearhead.errors import ConfigError, InputError
from clearhead.models.config import ModelConfig
from clearhead.training.settings import TrainingSettings

MODEL_FIELDS = {field.name for field in dataclasses.fields(ModelConfig)}
SETTING_FIELDS = {field.name for field in dataclasses.fields(TrainingSettings)}
STORED = {"texts": "training/texts.jsonl", "validation": "training/validation.jsonl"}


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Texts (none: Python's own reference) or pairs, a size, and the fields that differ from it.

    ``start_from`` is a model to train further, instead of a size and a tokenizer. ``texts`` and
    ``validation`` are paths; the two of ``STORED`` are files of the run's own folder.
    """

    texts: tuple[str, ...] = ()
    pairs: bool = False
    validation: tuple[str, ...] = ()  # files; none: a share of the texts is held out
    held_out: float = 0.1
    size: str = "tiny"
    tokenizer: str = "bpe"
    vocabulary: int | None = None
    start_from: str | None = None
    model: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    fingerprint: str | None = None  # of the data, so that a run continues on the same

    def __post_init__(self) -> None:
        if self.pairs and not self.texts:
            raise InputError("pairs come from two files, or from one with a tab in each line.")

    def to_fields(self) -> dict[str, Any]:
        """As plain values."""
        return dataclasses.asdict(self)

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Plan:
        """The plan that :meth:`to_fields` described."""
        try:
            plain: dict[str, Any] = {
                name: tuple(v) if isinstance(v, list) else v for name, v in fields.items()
            }
            return cls(**plain)
        except TypeError as error:
            raise InputError(f"training/run.json is not the plan of a run: {error}.") from None


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


def check_fields(model: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    """Refuse names that a model, or its training, does not have."""
    for what, given, known, other in (
        ("model", model, MODEL_FIELDS, SETTING_FIELDS),
        ("settings", settings, SETTING_FIELDS, MODEL_FIELDS),
    ):
        unknown = sorted(set(given) - known)
        if not unknown:
            continue
        elsewhere = "settings" if what == "model" else "model"
        misplaced = set(unknown) <= other
        raise ConfigError(
            f"{what} has no field {', '.join(unknown)}.",
            hint=f"it belongs into {elsewhere}." if misplaced else ", ".join(sorted(known)),
        )


def check_same(asked: Plan, begun: Plan) -> None:
    """Refuse to resume a run with other values than it began with; defaults ask for nothing."""
    plain = Plan().to_fields()
    wanted, kept = asked.to_fields(), begun.to_fields()
    for name, value in wanted.items():
        if isinstance(value, dict):
            differ = any(kept[name].get(key) != changed for key, changed in value.items())
        else:
            differ = value not in (plain[name], kept[name])
        if differ:
            raise InputError(
                f"the run was begun with other {name}: {kept[name]!r}, not {value!r}.",
                hint=f"leave {name} out to resume it, or begin a new run.",
            )
