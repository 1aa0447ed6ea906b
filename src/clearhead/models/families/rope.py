"""Rotary settings in config.json files: the old form and the new one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clearhead.attention.rotary import (
    FactorScaling,
    LinearScaling,
    Llama3Scaling,
    RotaryScaling,
    YarnScaling,
)
from clearhead.errors import CheckpointError
from clearhead.models.config import ModelConfig


def rope_fields(fields: Mapping[str, Any], layers: str = "full_attention") -> dict[str, Any]:
    """The settings for one kind of layers, as one flat object."""
    rope: Mapping[str, Any] = fields.get("rope_parameters") or {}
    if layers in rope:
        rope = rope[layers]
    old = fields.get("rope_scaling") or {}
    flat = {"rope_theta": fields.get("rope_theta"), **old, **rope}
    flat.setdefault("rope_type", old.get("type", "default"))
    flat.setdefault("original_max_position_embeddings", fields.get("max_position_embeddings"))
    return flat


def read_rope(fields: Mapping[str, Any], base: float = 10_000.0) -> dict[str, Any]:
    """Our config's fields for rotary positions."""
    flat = rope_fields(fields)
    return {"rotary_base": float(flat["rope_theta"] or base), "rotary_scaling": _scaling(flat)}


def _scaling(flat: Mapping[str, Any]) -> RotaryScaling | None:
    kind = flat["rope_type"]
    if kind == "default":
        return None
    if kind == "linear":
        return LinearScaling(float(flat["factor"]))
    if kind == "llama3":
        return Llama3Scaling(
            float(flat["factor"]),
            int(flat["original_max_position_embeddings"]),
            float(flat["low_freq_factor"]),
            float(flat["high_freq_factor"]),
        )
    if kind == "yarn" and not (flat.get("mscale") or flat.get("mscale_all_dim")):
        return YarnScaling(
            float(flat["factor"]),
            int(flat["original_max_position_embeddings"]),
            float(flat.get("beta_fast") or 32.0),
            float(flat.get("beta_slow") or 1.0),
            flat.get("attention_factor"),
            bool(flat.get("truncate", True)),
        )
    raise CheckpointError(
        f"config.json wants rotary scaling of type {kind!r}, which is not known.",
        hint="known are default, linear, llama3 and yarn (without mscale).",
    )


def write_rope(config: ModelConfig) -> dict[str, Any]:
    """The settings as new config.json files have them."""
    scaling = config.rotary_scaling
    fields: dict[str, Any] = {"rope_type": "default", "rope_theta": config.rotary_base}
    if scaling is None:
        return fields
    if isinstance(scaling, FactorScaling):
        raise CheckpointError("rotary factors of a GGUF file cannot be said in a config.json.")
    fields |= {"rope_type": "linear", "factor": scaling.factor}
    if isinstance(scaling, Llama3Scaling):
        fields |= {
            "rope_type": "llama3",
            "original_max_position_embeddings": scaling.original_context,
            "low_freq_factor": scaling.low_frequency_factor,
            "high_freq_factor": scaling.high_frequency_factor,
        }
    if isinstance(scaling, YarnScaling):
        fields |= {
            "rope_type": "yarn",
            "original_max_position_embeddings": scaling.original_context,
            "beta_fast": scaling.fast_turns,
            "beta_slow": scaling.slow_turns,
            "attention_factor": scaling.attention_factor,
            "truncate": scaling.whole_pairs,
        }
    return {name: value for name, value in fields.items() if value is not None}
