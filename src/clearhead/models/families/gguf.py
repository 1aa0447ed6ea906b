"""GGUF files: the config out of their metadata, and their names for tensors."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from clearhead.attention.rotary import FactorScaling, LinearScaling, RotaryScaling
from clearhead.errors import CheckpointError
from clearhead.models.config import ModelConfig
from clearhead.models.families.family import Family, Source, token_ids, window_marks

ARCHITECTURES = ("llama", "qwen2", "qwen3", "gemma2", "gemma3", "gpt2")
ROTARY_FACTORS = "rope_freqs.weight"


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
    scaling = None if factors is None else FactorScaling(factors)
    config = _config(_Reader(metadata, architecture), tensors, vocab, scaling)

    def names(config: ModelConfig) -> dict[str, Source | str]:
        return _gpt2_names(config) if architecture == "gpt2" else _names(config, architecture)

    def unused(_: Any) -> Any:
        raise CheckpointError("a GGUF file has no config.json.")

    ignored = (ROTARY_FACTORS,)
    return Family(f"gguf {architecture}", (), unused, unused, names, ignored=ignored), config


class _Reader:
    """The metadata under its architecture's name."""

    def __init__(self, metadata: Mapping[str, Any], architecture: str) -> None:
        self.metadata, self.architecture = metadata, architecture

    def needed(self, key: str) -> Any:
        value = self.get(key)
        if value is None:
            raise CheckpointError(f"the GGUF file lacks {self.architecture}.{key}.")
        return value

    def get(self, key: str, default: Any = None) -> Any:
        return self.metadata.get(f"{self.architecture}.{key}", default)


def _config(
    reader: _Reader, tensors: Collection[str], vocab: int, scaling: RotaryScaling | None
) -> ModelConfig:
    architecture = reader.architecture
    model, heads = reader.needed("embedding_length"), reader.needed("attention.head_count")
    fields: dict[str, Any] = {
        "kind": "decoder",
        "family": architecture.rstrip("23") if architecture.startswith("gemma") else "llama",
        "vocab": vocab,
        "context": reader.needed("context_length"),
        "model": model,
        "layers": reader.needed("block_count"),
        "heads": heads,
        "feed_forward": reader.needed("feed_forward_length"),
        "tied": "output.weight" not in tensors,
        "bos": reader.metadata.get("tokenizer.ggml.bos_token_id"),
        "eos": _ends(reader.metadata),
        "pad": reader.metadata.get("tokenizer.ggml.padding_token_id"),
    }
    if architecture == "gpt2":
        return ModelConfig(**fields | _gpt2_fields(reader))
    fields |= {
        "kv_heads": reader.get("attention.head_count_kv", heads),
        "key_dim": (width := reader.get("attention.key_length", model // heads)),
        "rotary_width": _rotary_width(reader, width),
        "rotary_base": float(reader.get("rope.freq_base", 10_000.0)),
        "rotary_scaling": _rotary_scaling(reader, scaling),
        "attention_bias": "blk.0.attn_q.bias" in tensors,
        "attention_output_bias": "blk.0.attn_output.bias" in tensors,
        "attention_norm": "blk.0.attn_q_norm.weight" in tensors,
        "activation": "silu",
        "gated": True,
        "norm_epsilon": float(reader.needed("attention.layer_norm_rms_epsilon")),
        "window": reader.get("attention.sliding_window") or None,
    }
    if architecture.startswith("gemma"):
        fields |= _gemma_fields(reader, fields)
    return ModelConfig(**fields)


def _rotary_width(reader: _Reader, head_width: int) -> int | None:
    """Return None where the whole head rotates, as in all other formats."""
    width: int = reader.get("rope.dimension_count", head_width)
    return None if width == head_width else width


def _ends(metadata: Mapping[str, Any]) -> tuple[int, ...]:
    """The tokens that end a text, and those that end a turn of a chat."""
    ends = (metadata.get(f"tokenizer.ggml.{name}_token_id") for name in ("eos", "eot"))
    return tuple(dict.fromkeys(id for end in ends for id in token_ids(end)))


def _rotary_scaling(reader: _Reader, factors: RotaryScaling | None) -> RotaryScaling | None:
    kind = reader.get("rope.scaling.type", "none")
    if factors is not None or kind == "none":
        return factors
    if kind == "linear":
        return LinearScaling(float(reader.needed("rope.scaling.factor")))
    raise CheckpointError(
        f"the GGUF file wants rotary scaling of type {kind!r}, which is not known in GGUF files.",
        hint="load the model's hub folder instead.",
    )


def _gpt2_fields(reader: _Reader) -> dict[str, Any]:
    return {
        "family": "gpt2",
        "positions": "learned",
        "attention_bias": True,
        "attention_output_bias": True,
        "activation": "gelu_tanh",
        "feed_forward_bias": True,
        "norm": "layer",
        "norm_epsilon": float(reader.needed("attention.layer_norm_epsilon")),
    }


def _gemma_fields(reader: _Reader, fields: Mapping[str, Any]) -> dict[str, Any]:
    third, layers = reader.architecture == "gemma3", fields["layers"]
    every = 6 if third else 2
    width = fields["key_dim"]
    if layers in (46, 62):  # the 27-billion models scale by model / heads
        width = fields["model"] // fields["heads"]
    return {
        "attention_scale": width**-0.5,
        "attention_softcap": reader.get("attn_logit_softcapping"),
        "output_softcap": reader.get("final_logit_softcapping"),
        "window_layers": window_marks(layers, lambda layer: bool((layer + 1) % every)),
        "window_rotary_base": float(reader.get("rope.freq_base_swa", 10_000.0)) if third else None,
        "activation": "gelu_tanh",
        "norm_place": "around",
        "norm_offset": True,
        "embedding_scale": fields["model"] ** 0.5,
    }


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
