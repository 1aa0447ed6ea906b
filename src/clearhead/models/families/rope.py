"""Rotary settings in config.json files: the old form and the new one."""

from __future__ import annotations

import math
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
from clearhead.models.families.field_rules import Fields, Refusal

READ: dict[str, Any] = {
    "rope_parameters": None,
    "rope_scaling": None,
    "rope_theta": None,
    "original_max_position_embeddings": None,
}
REFUSED = {
    "partial_rotary_factor": Refusal(
        "a rotation of a part of each head is not known here", (None, 1.0)
    ),
    "rope_interleaved": Refusal("rotation of neighbours is not known in config.json files"),
    "use_mrope": Refusal("rotation by several positions (images, video) is not known"),
}
LAYERS = ("full_attention", "sliding_attention")
KNOWN = {
    "default": (),
    "linear": ("factor",),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"),
    "yarn": ("factor", "original_max_position_embeddings", "beta_fast", "beta_slow",
             "attention_factor", "mscale", "mscale_all_dim", "truncate"),
}  # fmt: skip
# What transformers passes over where another type is in force, or writes into every type.
PASSED_OVER = {
    "rope_type",
    "type",
    "rope_theta",
    *(name for names in KNOWN.values() for name in names),
}
REFUSED_INSIDE = ("mrope_section", "short_factor", "long_factor", "partial_rotary_factor")


def rope_fields(fields: Fields) -> dict[str, Any]:
    """The settings of a model whose layers all rotate alike, as one flat object."""
    flat = dict(fields.get("rope_scaling") or fields.get("rope_parameters") or {})
    flat.setdefault("rope_type", flat.get("type", "default"))
    flat.setdefault("rope_theta", fields.get("rope_theta"))
    if fields.get("original_max_position_embeddings") is not None:
        flat["original_max_position_embeddings"] = fields["original_max_position_embeddings"]
    return _checked(flat, fields)


def layer_rope_fields(fields: Fields, layers: str) -> dict[str, Any]:
    """The settings of one kind of layers, where they rotate differently (Gemma 3)."""
    rope = fields.get("rope_parameters") or {}
    outside = sorted(set(rope) - set(LAYERS))
    if outside:
        raise CheckpointError(
            f"config.json: rope_parameters has {', '.join(outside)}; wanted are settings under "
            f"{' and '.join(LAYERS)}."
        )
    flat = dict(rope.get(layers) or {})
    if layers == "full_attention":
        flat |= fields.get("rope_scaling") or {}
    flat.setdefault("rope_type", flat.get("type", "default"))
    bases = {"full_attention": "rope_theta", "sliding_attention": "rope_local_base_freq"}
    flat.setdefault("rope_theta", fields.get(bases[layers]))
    return _checked(flat, fields)


def _checked(flat: dict[str, Any], fields: Fields) -> dict[str, Any]:
    if flat["rope_type"] not in KNOWN:
        raise CheckpointError(
            f"config.json wants rotary scaling of type {str(flat['rope_type'])[:60]!r}, which is "
            "not known.",
            hint=f"known are {', '.join(KNOWN)}.",
        )
    for name in REFUSED_INSIDE:
        if flat.get(name) not in (None, 1.0):
            raise CheckpointError(
                f"config.json: {name} of the rotary settings is {str(flat[name])[:60]}, which is "
                "not known."
            )
    context = fields.get("max_position_embeddings")
    flat.setdefault("original_max_position_embeddings", context)
    return flat | {"max_position_embeddings": context}


def read_rope(fields: Fields, base: float = 10_000.0) -> dict[str, Any]:
    """Our config's fields for rotary positions."""
    flat = rope_fields(fields)
    return {"rotary_base": float(flat["rope_theta"] or base), "rotary_scaling": scaling_of(flat)}


def scaling_of(flat: Mapping[str, Any]) -> RotaryScaling | None:
    """Our scaling for the settings of some layers."""
    kind = flat["rope_type"]
    if kind == "default":
        return None
    if kind == "linear":
        return LinearScaling(float(flat["factor"]))
    context = int(flat["original_max_position_embeddings"])
    if kind == "llama3":
        return Llama3Scaling(
            float(flat["factor"]),
            context,
            float(flat["low_freq_factor"]),
            float(flat["high_freq_factor"]),
        )
    factor = flat["factor"]
    factor = float(flat["max_position_embeddings"] / context if factor is None else factor)
    return YarnScaling(
        factor,
        context,
        float(flat.get("beta_fast") or 32.0),
        float(flat.get("beta_slow") or 1.0),
        _attention_factor(flat, factor),
        bool(flat.get("truncate", True)),
    )


def _attention_factor(flat: Mapping[str, Any], factor: float) -> float | None:
    """What is given, or the ratio of two strengths if both are (DeepSeek)."""
    given, over = flat.get("mscale"), flat.get("mscale_all_dim")
    if flat.get("attention_factor") is not None or not (given and over):
        return flat.get("attention_factor")
    if factor <= 1:
        return 1.0
    return (0.1 * given * math.log(factor) + 1.0) / (0.1 * over * math.log(factor) + 1.0)  # type: ignore[no-any-return]


def unread_inside(fields: Fields) -> tuple[str, ...]:
    """The rotary settings that nobody knows, by their full names."""
    unknown = []
    for name in ("rope_parameters", "rope_scaling"):
        rope = fields.get(name) or {}
        places = {f"{name}.{layers}": rope[layers] or {} for layers in LAYERS if layers in rope}
        for place, settings in (places or {name: rope}).items():
            known = PASSED_OVER.union(REFUSED_INSIDE)
            unknown += [f"{place}.{key}" for key in settings if key not in known]
    return tuple(unknown)


def write_rope(base: float, scaling: RotaryScaling | None) -> dict[str, Any]:
    """The settings as new config.json files have them."""
    fields: dict[str, Any] = {"rope_type": "default", "rope_theta": base}
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


def rope_of(config: ModelConfig) -> dict[str, Any]:
    """The settings of a model whose layers all rotate alike."""
    return write_rope(config.rotary_base, config.rotary_scaling)
