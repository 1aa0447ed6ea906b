"""The model that a run trains further: loaded with weights that can be changed, or adapters."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from clearhead.checkpoints.adapters.base import Base, checksum_of_model, is_adapter
from clearhead.checkpoints.load import load, resolve
from clearhead.errors import InputError
from clearhead.models.build import Model, build
from clearhead.text.tokenizer import Tokenizer
from clearhead.training.settings import TrainingSettings
from clearhead.training.tasks.parameters import adapt


def start_of(
    name: str,
    dropouts: Mapping[str, Any],
    settings: TrainingSettings,
    tokenizer: Tokenizer | None = None,
) -> tuple[Model, Tokenizer]:
    """The model of a name, with other dropouts where they are asked for, and adapters.

    With adapters the matrices of a GGUF file stay as they are stored; else all are float32.

    Raises:
        InputError: it has no tokenizer, or it is an adapter itself.
    """
    path = resolve(name)
    if settings.lora is not None and is_adapter(path):
        raise InputError(
            f"{name} is an adapter already.",
            hint=f"merge it first: clearhead models merge {name} FOLDER; or leave --lora out, "
            "which trains all of it.",
        )
    loaded = load(name, dtype=None if settings.lora is not None else torch.float32)
    tokenizer = loaded.tokenizer if tokenizer is None else tokenizer
    if tokenizer is None:
        raise InputError(f"{name} has no tokenizer, so texts mean nothing to it.")
    model = with_dropout(loaded.model, dropouts)
    adapt(model, settings)
    return model, tokenizer


def with_dropout(model: Model, dropouts: Mapping[str, Any]) -> Model:
    """The model with other dropouts; the weights are the same memory."""
    config = model.config.changed(**dropouts)
    if config == model.config:
        return model
    with torch.device("meta"):
        changed = build(config)
    changed.load_state_dict(dict(model.named_parameters()), strict=False, assign=True)
    return changed.eval().requires_grad_(False)


def base_of(name: str, kept: Path | None) -> Base:
    """The base of adapters: its name, and the checksum of its files (or of the run's own copy)."""
    return Base(name, checksum_of_model(resolve(name) if kept is None else kept))
