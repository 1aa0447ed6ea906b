"""Checks of a ``ModelConfig``: types, sizes, and fields that contradict each other."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, get_type_hints

from clearhead.arguments import shown
from clearhead.errors import ConfigError
from clearhead.models.field_types import type_mismatch
from clearhead.models.scalings import check_scaling

if TYPE_CHECKING:
    from clearhead.models.config import ModelConfig

SCALED = ("rotary_scaling", "window_rotary_scaling")
DROPOUTS = (
    "dropout", "attention_dropout", "embedding_dropout", "activation_dropout", "head_dropout",
)  # fmt: skip
LARGEST_ID = 2**31
_WIDTH, _COUNT = (1, 2**20), (1, 2**16)
SIZES: dict[str, tuple[int, int]] = {
    "vocab": (1, 2**24), "context": (1, 2**40), "model": _WIDTH, "feed_forward": (1, 2**24),
    "layers": (1, 10_000), "encoder_layers": (1, 10_000), "heads": _COUNT, "kv_heads": _COUNT,
    "key_dim": _WIDTH, "value_dim": _WIDTH, "rotary_width": _WIDTH, "labels": (0, 2**24),
    "segments": (0, _COUNT[1]), "position_offset": (0, _COUNT[1]), "window": (1, 2**40),
    "relative_buckets": (4, _COUNT[1]), "relative_distance": (1, 2**40),
}  # fmt: skip
"""The least and the most of each size. No known model has a tenth of the most, and the number of
bytes of every tensor stays far below 2⁶³, so that torch can at least say that memory is short."""


def check_config(config: ModelConfig) -> None:
    """Refuse a config that describes no model.

    Raises:
        ConfigError: a field has a wrong type or value, or fields contradict each other.
    """
    _check_types(config)
    _check_sizes(config)
    _check_combinations(config)


def _check_types(config: ModelConfig) -> None:
    kind: Any = type(config)
    for name, hint in _hints(kind).items():
        value = getattr(config, name)
        wanted = type_mismatch(value, hint)
        if wanted is not None:
            raise ConfigError(f"{name} must be {wanted}; got {shown(value)}.")


@functools.cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _check_sizes(config: ModelConfig) -> None:
    for name, (least, most) in SIZES.items():
        value = getattr(config, name)
        if value is not None and value < least:
            raise ConfigError(f"{name} must be {least} or more; got {shown(value)}.")
        if value is not None and value > most:
            raise ConfigError(f"{name} must be {most:,} or less; got {shown(value)}.")
    for name in ("bos", "pad", "start", "eos"):
        value = getattr(config, name)
        for id in value if isinstance(value, tuple) else (value,):
            if id is not None and abs(id) >= LARGEST_ID:
                raise ConfigError(
                    f"{name}: a token's id is a number below {LARGEST_ID:,}; got {shown(id)}."
                )
    if config.key_dim is None and config.model % config.heads:
        raise ConfigError(
            f"a model width of {config.model} cannot be divided into {config.heads} heads; "
            "heads must divide it, or key_dim be given."
        )
    if config.heads % (config.kv_heads or config.heads):
        raise ConfigError(
            f"{config.heads} heads cannot share {config.kv_heads} key/value heads evenly: kv_heads "
            "must divide them."
        )
    if not 0 < config.norm_epsilon <= 1_000:
        raise ConfigError(f"norm_epsilon must be above 0 up to 1,000; got {config.norm_epsilon}.")
    for name in DROPOUTS:
        if not 0 <= (getattr(config, name) or 0.0) < 1:
            raise ConfigError(f"{name} must be from 0 up to below 1; got {getattr(config, name)}.")
    for name in ("attention_softcap", "output_softcap"):
        value = getattr(config, name)
        if value is not None and value <= 0:
            raise ConfigError(f"{name} must be above 0; got {value}.")


def _check_combinations(config: ModelConfig) -> None:
    if (config.kind == "encoder-decoder") != (config.encoder_layers is not None):
        raise ConfigError(
            "encoder_layers belongs to an encoder-decoder, and only to it; got kind "
            f"{config.kind!r} with encoder_layers {config.encoder_layers}."
        )
    if not config.shared_embedding and config.kind != "encoder-decoder":
        raise ConfigError(
            "shared_embedding=False gives an encoder-decoder two token embeddings; a model of "
            f"kind {config.kind!r} has one."
        )
    if config.head == "classification" and config.labels < 1:
        raise ConfigError(f"a classification head needs labels of 1 or more; got {config.labels}.")
    if config.label_names and len(config.label_names) != config.labels:
        raise ConfigError(
            f"label_names names each of the {config.labels} labels; got "
            f"{len(config.label_names)} names."
        )
    if config.kind == "encoder" and config.head == "language":
        raise ConfigError(
            "an encoder sees the whole text and cannot predict the next token; its head is "
            "masked, embedding, classification or none."
        )
    if config.window_layers is not None and len(config.window_layers) != config.layers:
        raise ConfigError(
            f"window_layers marks each of the {config.layers} layers; got "
            f"{len(config.window_layers)} marks."
        )
    if config.window_layers is not None and config.encoder_layers not in (None, config.layers):
        raise ConfigError(
            "window_layers marks encoder and decoder alike, so both need as many layers; got "
            f"{config.encoder_layers} and {config.layers}."
        )
    _check_positions(config)


def _check_positions(config: ModelConfig) -> None:
    if config.positions.startswith("sinusoidal") and config.model % 2:
        raise ConfigError(
            f"sinusoidal positions come in pairs, so model must be even; got {config.model}."
        )
    exact = config.relative_buckets // (4 if config.kind == "encoder" else 2)
    if config.positions == "relative" and config.relative_distance <= exact:
        raise ConfigError(
            f"relative_distance must be above {exact}, the distances with a bucket of their "
            f"own; got {config.relative_distance}."
        )
    for base in (config.rotary_base, config.window_rotary_base):
        if base is not None and base <= 1:
            raise ConfigError(f"the base of rotary positions must be above 1; got {base}.")
    for name in SCALED:
        scaling = getattr(config, name)
        if config.rotary is not None and scaling is not None:
            check_scaling(scaling, pairs=config.rotary.width // 2)
    if config.window_rotary_scaling is not None and config.window_rotary_base is None:
        raise ConfigError(
            "window_rotary_scaling belongs to window_rotary_base, which is not given."
        )
