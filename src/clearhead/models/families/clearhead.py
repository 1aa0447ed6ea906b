"""Our own models: whatever the config can say, under our own names."""

from __future__ import annotations

import json
from typing import Any

import torch

from clearhead.models.build import build
from clearhead.models.config import ModelConfig
from clearhead.models.families.family import Family, Source
from clearhead.models.families.field_rules import Fields


def read(fields: Fields) -> ModelConfig:
    """Return our config for the fields of a config.json."""
    return ModelConfig.from_fields(
        {name: value for name, value in fields.items() if name not in ("model_type", "dtype")}
    )


def write(config: ModelConfig) -> dict[str, Any]:
    """Return the fields of a config.json for our config."""
    return {"model_type": "clearhead", **json.loads(config.to_json())}


def names(config: ModelConfig) -> dict[str, Source | str]:
    """Every tensor under its own name."""
    with torch.device("meta"):
        model = build(config)
    return {name: name for name, _ in model.named_parameters()}


FAMILY = Family(
    name="clearhead", model_types=("clearhead",), read_fields=read, write=write, names=names
)
