"""GGUF files: the config out of their metadata, and their names for tensors."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

from clearhead.attention.rotary import (
    FactorScaling,
    LinearScaling,
    RotaryScaling,
    YarnScaling,
)
from clearhead.errors import CheckpointError
from clearhead.models.config import ModelConfig
from clearhead.models.families.family import Family, Source
from clearhead.models.families.field_values import token_ids, window_marks
from clearhead.models.families.gguf_keys import RULES, completed_metadata, one_number

ARCHITECTURES = tuple(RULES)
ROTARY_FACTORS = "rope_freqs.weight"
PATTERN = "attention.sliding_window_pattern"


def gguf_family(
    metadata: Mapping[str, Any],
    tensors: Collection[str],
    vocab: int,
    factors: tuple[float, ...] | None = None,
) -> tuple[Family, ModelConfig]:
    """The family (for its names) and the config of a GGUF file.

    ``vocab`` is how many rows the token embedding has, ``factors`` what ROTARY_FACTORS holds.
    """
    architecture = metadata.get("general.architecture")
    if architecture not in ARCHITECTURES:
        raise CheckpointError(
            f"the GGUF file's architecture is {architecture!r}, which no family reads.",
            hint=f"there are {', '.join(ARCHITECTURES)}.",
        )
    config = _config(architecture, metadata, tensors, vocab, factors)

    def names(config: ModelConfig) -> dict[str, Source | str]:
        return _gpt2_names(config) if architecture == "gpt2" else _names(config, architecture)

    def unused(_: Any) -> Any:
        raise CheckpointError("a GGUF file has no config.json.")

    ignored = {ROTARY_FACTORS: "read with the metadata"} if architecture == "llama" else {}
    return Family(f"gguf {architecture}", (), unused, unused, names, ignored=ignored), config


def _config(
    architecture: str,
    metadata: Mapping[str, Any],
    tensors: Collection[str],
    vocab: int,
    factors: tuple[float, ...] | None,
) -> ModelConfig:
    given = completed_metadata(metadata, architecture)
    read = (key for key in RULES[architecture].read if key != PATTERN)
    own = {key: one_number(given, key) for key in read} | {PATTERN: given.get(PATTERN)}
    model, heads = own["embedding_length"], own["attention.head_count"]
    fields: dict[str, Any] = {
        "kind": "decoder",
        "family": architecture.rstrip("23") if architecture.startswith("gemma") else "llama",
        "vocab": vocab,
        "context": own["context_length"],
        "model": model,
        "layers": own["block_count"],
        "heads": heads,
        "feed_forward": own["feed_forward_length"],
        "tied": "output.weight" not in tensors,
        "bos": metadata.get("tokenizer.ggml.bos_token_id"),
        "eos": _ends(metadata),
        "pad": metadata.get("tokenizer.ggml.padding_token_id"),
    }
    if architecture == "gpt2":
        return ModelConfig(**fields | _gpt2_fields(own))
    width = _given(own["attention.key_length"], model // heads)
    value_width = _given(own["attention.value_length"], model // heads)
    _refuse_partial_rotation(own, width, architecture)
    fields |= {
        "kv_heads": _given(own["attention.head_count_kv"], heads),
        "key_dim": width,
        "value_dim": None if value_width == width else value_width,
        "rotary_base": float(own["rope.freq_base"]),
        "rotary_scaling": _rotary_scaling(own, factors),
        "attention_bias": "blk.0.attn_q.bias" in tensors,
        "attention_output_bias": "blk.0.attn_output.bias" in tensors,
        "attention_norm": "blk.0.attn_q_norm.weight" in tensors,
        "activation": "silu",
        "gated": True,
        "norm_epsilon": float(own["attention.layer_norm_rms_epsilon"]),
    }
    if architecture.startswith("gemma"):
        return ModelConfig(**fields | _gemma_fields(own, fields, third=architecture == "gemma3"))
    _refuse_window(own, architecture)
    return ModelConfig(**fields)


def _given(value: Any, default: Any) -> Any:
    return default if value is None else value


def _refuse_window(own: Mapping[str, Any], architecture: str) -> None:
    """llama.cpp reads no window in these architectures; the model may well have had one."""
    window = own["attention.sliding_window"]
    if window and window < own["context_length"]:
        raise CheckpointError(
            f"the GGUF file: {architecture}.attention.sliding_window is {window}, and llama.cpp "
            "reads no window in this architecture.",
            hint="load the model's hub folder instead.",
        )


def _refuse_partial_rotation(own: Mapping[str, Any], width: int, architecture: str) -> None:
    """In these architectures the whole head rotates; llama.cpp stops at anything else."""
    rotated = _given(own["rope.dimension_count"], width)
    if rotated != width:
        raise CheckpointError(
            f"the GGUF file: {architecture}.rope.dimension_count is {rotated}, and its heads are "
            f"{width} wide; in this architecture the whole head rotates."
        )


def _ends(metadata: Mapping[str, Any]) -> tuple[int, ...]:
    """The tokens that end a text, a turn of a chat, and a message of one."""
    ends = (metadata.get(f"tokenizer.ggml.{name}_token_id") for name in ("eos", "eot", "eom"))
    return tuple(dict.fromkeys(id for end in ends for id in token_ids(end)))


def _rotary_scaling(
    own: Mapping[str, Any], factors: tuple[float, ...] | None
) -> RotaryScaling | None:
    """What the keys say; a factor without a type is linear. Factors of each pair come on top."""
    kind, gain = own["rope.scaling.type"], float(own["rope.scaling.attn_factor"])
    factor = float(own["rope.scaling.factor"] or own["rope.scale_linear"] or 1.0)
    if kind == "yarn" and factors is None:
        context = _given(own["rope.scaling.original_context_length"], own["context_length"])
        sharpened = 0.1 * math.log(factor) + 1.0 if factor > 1 else 1.0
        return YarnScaling(factor, context, attention_factor=sharpened * gain)
    if gain != 1.0 and factors is None and (kind == "none" or factor == 1.0):
        return YarnScaling(1.0, own["context_length"], attention_factor=gain)  # the gain alone
    if kind not in ("none", "linear") or gain != 1.0:
        what = (
            f"rope.scaling.type {str(kind)[:60]!r}" if gain == 1.0 else "rope.scaling.attn_factor"
        )
        beside = "" if factors is None else f" beside {ROTARY_FACTORS}"
        raise CheckpointError(
            f"the GGUF file wants rotary scaling by {what}{beside}, which is not known.",
            hint="load the model's hub folder instead.",
        )
    factor = 1.0 if kind == "none" else factor
    if factors is not None:
        return FactorScaling(tuple(factor * each for each in factors))
    return None if factor == 1.0 else LinearScaling(factor)


def _gpt2_fields(own: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "family": "gpt2",
        "positions": "learned",
        "attention_bias": True,
        "attention_output_bias": True,
        "activation": "gelu_tanh",
        "feed_forward_bias": True,
        "norm": "layer",
        "norm_epsilon": float(own["attention.layer_norm_epsilon"]),
    }


def _gemma_fields(
    own: Mapping[str, Any], fields: Mapping[str, Any], *, third: bool
) -> dict[str, Any]:
    width, window = fields["key_dim"], own["attention.sliding_window"] or None
    if fields["layers"] in (46, 62):  # the 27-billion models scale by model / heads
        width = fields["model"] // fields["heads"]
    base = own["rope.freq_base_swa"]
    return {
        "attention_scale": width**-0.5,
        "attention_softcap": None if third else own["attn_logit_softcapping"],
        "output_softcap": (own["final_logit_softcapping"] or None)
        if third
        else own["final_logit_softcapping"],
        "window": window,
        "window_layers": None if window is None else _marks(own, fields["layers"], third=third),
        **_window_rotary(fields, base, third=third),
        "activation": "gelu_tanh",
        "norm_place": "around",
        "norm_offset": True,
        "embedding_scale": fields["model"] ** 0.5,
    }


def _window_rotary(fields: Mapping[str, Any], base: float | None, *, third: bool) -> dict[str, Any]:
    """In Gemma 3 layers with a window have a base of their own and are never scaled."""
    if base is None:
        return {}
    scaling = None if third else fields["rotary_scaling"]
    return {"window_rotary_base": float(base), "window_rotary_scaling": scaling}


def _marks(own: Mapping[str, Any], layers: int, *, third: bool) -> tuple[bool, ...]:
    """A mark for each layer, or the number of layers of which the last one has no window."""
    pattern = _given(own[PATTERN], 6 if third else 2)
    if isinstance(pattern, list):
        return tuple(map(bool, pattern))
    if pattern is True or pattern is False:  # a list of marks that are all the same
        return window_marks(layers, lambda _layer: pattern)
    return window_marks(layers, lambda layer: pattern == 0 or layer % pattern < pattern - 1)


def _names(config: ModelConfig, architecture: str) -> dict[str, Source | str]:
    """Llama and relatives; only the architecture ``llama`` stores queries and keys in pairs."""
    block, layer = "stack.blocks.{i}", "blk.{i}"
    paired = architecture == "llama"
    shift = -1.0 if config.norm_offset else 0.0  # GGUF adds the 1 that Gemma leaves out
    places: dict[str, Source | str] = {
        "stack.embedding.tokens.weight": "token_embd.weight",
        "stack.norm.weight": Source("output_norm.weight", shift=shift),
    }
    for ours, theirs, heads in (
        ("query", "attn_q", config.heads),
        ("key", "attn_k", config.kv_heads or config.heads),
        ("value", "attn_v", 0),
        ("output", "attn_output", 0),
    ):
        pairs = heads if paired else 0
        has_bias = config.attention_output_bias if ours == "output" else config.attention_bias
        for kind in ("weight", "bias") if has_bias else ("weight",):
            place = Source(f"{layer}.{theirs}.{kind}", paired_heads=pairs)
            places[f"{block}.attention.{ours}.{kind}"] = place
    for part in ("gate", "up", "down"):
        places[f"{block}.feed_forward.{part}.weight"] = f"{layer}.ffn_{part}.weight"
    norms = {"attention_residual.before": "attn_norm", "feed_forward_residual.before": "ffn_norm"}
    if config.norm_place == "around":
        norms["attention_residual.after"] = "post_attention_norm"
        norms["feed_forward_residual.after"] = "post_ffw_norm"
    if config.attention_norm:
        norms |= {"attention.query_norm": "attn_q_norm", "attention.key_norm": "attn_k_norm"}
    for ours, theirs in norms.items():
        places[f"{block}.{ours}.weight"] = Source(f"{layer}.{theirs}.weight", shift=shift)
    if not config.tied:
        places["head.weight"] = "output.weight"
    return places


def _gpt2_names(config: ModelConfig) -> dict[str, Source | str]:
    block, layer = "stack.blocks.{i}", "blk.{i}"
    places: dict[str, Source | str] = {
        "stack.embedding.tokens.weight": "token_embd.weight",
        "stack.embedding.positions.weight": "position_embd.weight",
    }
    for kind in ("weight", "bias"):
        places[f"stack.norm.{kind}"] = f"output_norm.{kind}"
        for part, ours in enumerate(("query", "key", "value")):
            place = Source(f"{layer}.attn_qkv.{kind}", part, 3)
            places[f"{block}.attention.{ours}.{kind}"] = place
        for ours, theirs in (
            ("attention.output", "attn_output"),
            ("attention_residual.before", "attn_norm"),
            ("feed_forward_residual.before", "ffn_norm"),
            ("feed_forward.up", "ffn_up"),
            ("feed_forward.down", "ffn_down"),
        ):
            places[f"{block}.{ours}.{kind}"] = f"{layer}.{theirs}.{kind}"
    if not config.tied:
        places["head.weight"] = "output.weight"
    return places
