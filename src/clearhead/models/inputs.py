"""Checks of what a model is given: its config, token ids, the states of a source, a cache.

They run before every forward, so they ask for kinds and shapes only; whether ids are in the
vocabulary is asked where they are looked up.
"""

from __future__ import annotations

import torch
from torch import Tensor

from clearhead.arguments import shown
from clearhead.errors import ConfigError, InputError, ShapeError
from clearhead.models.cache import ModelCache
from clearhead.models.config import ModelConfig
from clearhead.tensors import dense_tensor, row_numbers, same_device, token_ids


def check_config(config: object) -> None:
    """Refuse what is no config at all."""
    if not isinstance(config, ModelConfig):
        raise ConfigError(
            f"config must be a ModelConfig; got {shown(config)}.",
            hint='ch.ModelConfig(kind="decoder", …) describes a model, ch.load opens one.',
        )


def check_ids(name: str, ids: object, weight: Tensor) -> None:
    """Token ids (batch, query), at least one in each row, where the model's weights are."""
    given = token_ids(name, ids)
    if weight.is_meta and not given.is_meta:
        raise InputError(
            f"{name} cannot be read: this model has no weights in memory (they are on the meta "
            "device).",
            hint="the CPU engine frees the float32 weights that it has copied: load it again.",
        )
    same_device(name, given, weight.device)


def check_length(config: ModelConfig, new: int, past: int) -> None:
    """Refuse more tokens than the positions of a model are made for."""
    longest = config.longest_text
    if longest is not None and new + past > longest:
        raise InputError(
            f"ids: {new + past} tokens do not fit into this model's context of {longest}.",
            hint="shorten the text.",
        )


def check_cache(cache: object, layers: int, ids: Tensor, *, cross: bool) -> None:
    """Refuse a cache of another model, or of a batch with another number of rows."""
    if not isinstance(cache, ModelCache):
        raise InputError(
            f"cache must come from model.new_cache(); got {type(cache).__name__}.",
            hint="a KVCache serves one layer, a model's cache all of them.",
        )
    if len(cache.layers) != layers or len(cache.cross_layers) != layers * cross:
        raise InputError(
            f"cache must be of this model, with {layers} layers; got one of another model, with "
            f"{len(cache.layers)}{' and cross-attention' if cache.cross_layers else ''}.",
            hint="model.new_cache() makes one.",
        )
    rows = cache.rows
    if rows is not None and rows != ids.shape[0]:
        raise ShapeError(
            f"cache holds a batch of {rows}, and the ids are {ids.shape[0]} rows.",
            hint="a new batch needs a new cache.",
        )


def check_source(
    source: object, counts: object, target: Tensor, *, model: int, dtype: torch.dtype
) -> None:
    """The states of a source (batch, key, model) for each row of the target, and their counts."""
    if source is not None:
        states = dense_tensor("source", source)
        if states.ndim != 3 or states.shape[2] != model or 0 in states.shape:
            raise ShapeError(
                f"source must be states (batch, key, {model}) from encode; got "
                f"{tuple(states.shape)}."
            )
        if len(states) != len(target):
            raise ShapeError(
                f"source and target must be of one batch; got {len(states)} sources and "
                f"{len(target)} targets."
            )
        same_device("source", states, target.device)
        if not states.is_floating_point() or (
            states.dtype != dtype and not torch.is_autocast_enabled(states.device.type)
        ):
            raise InputError(f"source must be {dtype}, as the model is; got {states.dtype}.")
    if counts is not None:
        longest = None if source is None else states.shape[1]
        row_numbers("source_counts", counts, rows=len(target), least=1, most=longest)
