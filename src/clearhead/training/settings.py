"""The settings of a training run, checked once and saved beside the result."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from clearhead.arguments import shown
from clearhead.errors import ConfigError

ScheduleName: TypeAlias = Literal["cosine", "inverse-square-root", "linear"]
OptimiserName: TypeAlias = Literal["muon", "adamw"]
Precision: TypeAlias = Literal["auto", "float32", "bfloat16"]


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """Length, batch size, learning rates and the other settings of a run.

    A run is as long as ``steps`` says, or as many steps as fit into ``minutes``; ``patience`` ends
    it earlier, after so many validations without a new best. A step learns from ``batch_tokens``
    tokens, computed in ``accumulation`` parts where memory is short: the result is the same.
    """

    # length of the run
    steps: int | None = None
    minutes: float | None = None
    patience: int | None = None
    # batch size
    batch_tokens: int = 2048
    row: int | None = None  # tokens of a row of text; else as many as the context and a batch hold
    accumulation: int = 1
    # which parameters are trained
    freeze: str = ""  # words and patterns, with commas between (training/parameters.py)
    lora: int | None = None  # rank of adapters, which alone are trained then
    lora_alpha: float | None = None  # adapters are multiplied with alpha / rank; else 2
    lora_dropout: float = 0.0
    lora_targets: str = "all"  # matrices of the layers, as in freeze
    # optimiser and schedule
    optimiser: OptimiserName = "muon"
    learning_rate: float = 2e-3  # AdamW's
    matrix_learning_rate: float = 2e-2  # Muon's
    momentum: float = 0.95  # Muon's
    beta_1: float = 0.9  # AdamW's
    beta_2: float = 0.98
    weight_decay: float = 0.01
    clip: float = 1.0  # largest norm of the gradient; 0 leaves it as it is
    schedule: ScheduleName = "linear"
    warmup: int = 40
    cooldown: float = 0.5  # last share of the steps, in which a linear schedule falls
    floor: float = 0.05  # of the learning rate, at the end
    label_smoothing: float = 0.0
    # validation, checkpoints, random seed
    validate_every: int = 100
    validation_tokens: int | None = None  # at most so many are validated on; else all held out
    checkpoint_minutes: float = 5.0  # between checkpoints, apart from those of validations
    keep_every: int | None = None  # steps after which the model is kept in a folder of its own
    average: int = 1  # checkpoints that are kept and, at the end, averaged
    seed: int = 0
    precision: Precision = "auto"

    def __post_init__(self) -> None:
        if (self.steps is None) == (self.minutes is None):
            raise ConfigError(
                "a run is as long as steps or minutes say: give one of them; got "
                f"steps={shown(self.steps)} and minutes={shown(self.minutes)}."
            )
        check_values(vars(self))

    def changed(self, **fields: Any) -> TrainingSettings:
        """These settings with some fields changed."""
        return TrainingSettings.from_fields(dataclasses.asdict(self) | fields)

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> TrainingSettings:
        """Settings from plain JSON values; a field that there is not is an error."""
        if not isinstance(fields, Mapping):
            raise ConfigError(f"fields must be a dict of settings by name; got {shown(fields)}.")
        known = {field.name for field in dataclasses.fields(cls)}
        unknown = sorted(map(str, set(fields) - known))
        if unknown:
            raise ConfigError(
                f"training has no setting {', '.join(unknown)}.",
                hint=f"settings: {', '.join(sorted(known))}",
            )
        check_values(fields)
        return cls(**{name: _number(name, value) for name, value in fields.items()})


def check_values(fields: Mapping[str, Any]) -> None:
    """Refuse values that are of the wrong kind or out of range."""
    for name, value in fields.items():
        if name in NAMES:
            if not isinstance(value, str) or value not in get_args(NAMES[name]):
                raise ConfigError(
                    f"{name} is one of {', '.join(get_args(NAMES[name]))}; got {shown(value)}."
                )
        elif name in TEXTS:
            _check_text(name, value)
        elif value is not None or name not in OPTIONAL:
            _check_number(name, value)


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str) or len(value) > LONGEST_TEXT:
        raise ConfigError(f"{name} must be a text, with commas; got {shown(value)}.")
    if any("\ud800" <= sign <= "\udfff" for sign in value):
        raise ConfigError(f"{name} holds half a character (a lone surrogate): {shown(value)}.")


def _number(name: str, value: Any) -> Any:
    """Whole numbers as floats where any number is allowed: 1 and 1.0 are the same setting."""
    whole = name in WHOLE or not isinstance(value, int)
    return value if whole else float(value)


def _check_number(name: str, value: object) -> None:
    kinds = int if name in WHOLE else int | float
    if isinstance(value, bool) or not isinstance(value, kinds):
        kind = "a whole number" if name in WHOLE else "a number"
        raise ConfigError(f"{name} must be {kind}; got {shown(value)}.")
    low, high = RANGES[name]
    if abs(value) > LARGEST or not (math.isfinite(value) and low <= value <= high):
        most = "" if high == math.inf else f" and at most {high:g}"
        raise ConfigError(f"{name} must be at least {low:g}{most}; got {shown(value)}.")


LENGTH = ("steps", "minutes")
CHANGEABLE = (*LENGTH, "checkpoint_minutes")  # of a run that is resumed
NAMES: dict[str, Any] = {
    "optimiser": OptimiserName,
    "schedule": ScheduleName,
    "precision": Precision,
}
TEXTS, LONGEST_TEXT = ("freeze", "lora_targets"), 10_000
OPTIONAL = {
    "steps", "minutes", "patience", "row", "lora", "lora_alpha", "validation_tokens",
    "keep_every",
}  # fmt: skip
WHOLE = {
    "steps", "patience", "batch_tokens", "row", "accumulation", "warmup", "validate_every",
    "average", "seed", "lora", "validation_tokens", "keep_every",
}  # fmt: skip
LARGEST = 2**62
_SHARE, _COUNT, _RATE = (0.0, 1.0), (1, math.inf), (1e-12, 1e3)
RANGES: dict[str, tuple[float, float]] = {
    "steps": _COUNT, "minutes": (1e-3, math.inf), "patience": _COUNT, "batch_tokens": _COUNT,
    "row": _COUNT, "accumulation": _COUNT, "learning_rate": _RATE, "matrix_learning_rate": _RATE,
    "momentum": (0.0, 0.9999), "beta_1": (0.0, 0.9999), "beta_2": (0.0, 0.99999),
    "weight_decay": (0.0, 10.0), "clip": (0.0, math.inf), "warmup": (0, math.inf),
    "cooldown": _SHARE, "floor": _SHARE, "label_smoothing": (0.0, 0.99),
    "validate_every": _COUNT, "checkpoint_minutes": (1e-3, math.inf), "average": (1, 1000),
    "seed": (0, 2**62), "lora": (1, 2**16), "lora_alpha": (1e-6, 1e6), "lora_dropout": (0.0, 0.99),
    "validation_tokens": _COUNT, "keep_every": _COUNT,
}  # fmt: skip
