"""Options of a run: none is ignored. What contradicts another option, or would change nothing, is
refused by name; and so is what would change a run that has begun."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from clearhead.errors import ConfigError, InputError
from clearhead.models.config import ModelConfig
from clearhead.models.config_checks import DROPOUTS
from clearhead.training.plan import MODEL_FIELDS, SETTING_FIELDS, Plan
from clearhead.training.settings import CHANGEABLE, LENGTH, TrainingSettings

OF_NEW_MODELS = ("size", "tokenizer", "vocabulary", "model")
DECIDED = {
    "kind": "texts train a decoder, pairs an encoder-decoder",
    "vocab": "the tokenizer decides it: --vocabulary (vocabulary=)",
    **dict.fromkeys(("bos", "eos", "pad", "start"), "the tokenizer decides it"),
    **dict.fromkeys(
        (
            "head",
            "labels",
            "label_names",
            "classifier",
            "head_dropout",
            "embedding_unit",
            "segments",
        ),
        "a model that is trained here predicts tokens",
    ),
}
NEEDED: dict[str, tuple[str, tuple[object, ...]]] = {  # option → the field that it needs, as what
    "momentum": ("optimiser", ("muon",)),
    "matrix_learning_rate": ("optimiser", ("muon",)),
    "cooldown": ("schedule", ("linear",)),
    "floor": ("schedule", ("linear", "cosine")),
    "rotary_base": ("positions", ("rotary",)),
    "rotary_width": ("positions", ("rotary",)),
    "rotary_scaling": ("positions", ("rotary",)),
    "window_rotary_base": ("positions", ("rotary",)),
    "relative_buckets": ("positions", ("relative",)),
    "relative_distance": ("positions", ("relative",)),
    "position_offset": ("positions", ("learned",)),
    "norm_offset": ("norm", ("rms",)),
}
NEED_ADAPTERS = ("lora_alpha", "lora_dropout", "lora_targets")
NEED_A_WINDOW = ("window_layers", "window_rotary_base")


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


def check_begin(asked: Mapping[str, Any]) -> None:
    """Refuse options of a new run that contradict each other or are decided elsewhere."""
    if asked.get("start_from") is None and asked.get("settings", {}).get("lora") is not None:
        raise InputError(
            "adapters (lora) are for a model that was trained before.",
            hint="name it: --from MODEL (start_from=).",
        )
    if asked.get("start_from") is not None:
        given = [name for name in OF_NEW_MODELS if asked.get(name)]
        if set(asked.get("model", {})) <= set(DROPOUTS):
            given = [name for name in given if name != "model"]
        if given:
            raise InputError(
                f"a model that is trained further keeps its shape and its tokenizer: "
                f"{', '.join(_names(asked, given))} is for a new model.",
                hint="leave it out, or leave out --from (start_from=).",
            )
    for name in asked.get("model", {}):
        if name in DECIDED:
            raise ConfigError(f"{name} cannot be set: {DECIDED[name]}.")


def check_used(asked: Mapping[str, Any], config: ModelConfig, settings: TrainingSettings) -> None:
    """Refuse fields that were asked for and change nothing, because another one is as it is."""
    values = {**_plain(config), **dataclasses.asdict(settings)}
    given = {**asked.get("model", {}), **asked.get("settings", {})}
    for name in given:
        needed, allowed = NEEDED.get(name, (None, ()))
        if needed is not None and values[needed] not in allowed:
            raise ConfigError(
                f"{name} changes nothing while {needed} is {values[needed]}.",
                hint=f"leave it out, or set {needed}={' or '.join(map(str, allowed))}.",
            )
        if name in NEED_ADAPTERS and settings.lora is None:
            raise ConfigError(f"{name} changes nothing without lora.", hint="set lora=, too.")
        if name == "freeze" and settings.lora is not None and given[name]:
            raise ConfigError(
                "freeze changes nothing beside lora: only the adapters are trained.",
                hint="leave it out; lora_targets chooses the matrices that have adapters.",
            )
        if name == "row" and given[name] is not None and config.kind == "encoder-decoder":
            raise ConfigError(
                "row changes nothing beside pairs: a source and its target are never cut.",
                hint="leave it out; batch_tokens says how many of them are learned from at once.",
            )
        if name in NEED_A_WINDOW and config.window is None:
            raise ConfigError(f"{name} changes nothing without a window.", hint="set window=, too.")
    if "family" in given and given["family"] != config.family:
        raise ConfigError(
            f"the config.json of the family {given['family']} cannot express this model.",
            hint="leave family out: the model is then saved in our own format.",
        )


def resumed(asked: Mapping[str, Any], begun: Plan, model: Mapping[str, Any]) -> Plan:
    """The plan of a run that is resumed: as it began, but as long as asked for now.

    ``model`` holds the fields of the run's config. Whatever else is asked for must be as it is.

    Raises:
        InputError: something else is asked for than the run began with; its name is told.
    """
    for name, value in asked.items():
        if isinstance(value, dict) or not value:
            continue
        kept = getattr(begun, name)
        if begun.start_from is not None and name in OF_NEW_MODELS:
            kept = f"that of {begun.start_from}"
        if value != kept:
            raise _refusal(name, kept, value)
    config = _plain(ModelConfig.from_fields(dict(model)))
    for name, value in asked.get("model", {}).items():
        if json.loads(json.dumps(value)) != config[name]:
            raise _refusal(name, config[name], value)
    settings = dict(begun.settings)
    for name, value in asked.get("settings", {}).items():
        if name not in CHANGEABLE and value != settings[name]:
            raise _refusal(name, settings[name], value)
        settings[name] = value
    given = {name for name in LENGTH if asked.get("settings", {}).get(name) is not None}
    settings |= {name: None for name in LENGTH if given and name not in given}
    return dataclasses.replace(begun, settings=settings)


def _refusal(name: str, kept: object, value: object) -> InputError:
    return InputError(
        f"the run was begun with other {name}: {kept!r}, not {value!r}.",
        hint=f"leave {name} out to resume it, or begin a new run. Only steps, minutes and "
        "checkpoint_minutes may change.",
    )


def _names(asked: Mapping[str, Any], given: list[str]) -> list[str]:
    """The options by name; of ``model`` its fields."""
    plain = [name for name in given if name != "model"]
    fields = set(asked.get("model", {})) - set(DROPOUTS)
    return plain + sorted(fields if "model" in given else [])


def _plain(config: ModelConfig) -> dict[str, Any]:
    """Every field of a config as JSON has it; defaults too."""
    written = json.loads(config.to_json())
    fields = {f.name: written.get(f.name, f.default) for f in dataclasses.fields(ModelConfig)}
    return {name: list(v) if isinstance(v, tuple) else v for name, v in fields.items()}
