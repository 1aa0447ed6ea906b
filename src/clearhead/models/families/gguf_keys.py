"""The metadata keys of GGUF files: each is read, known to be harmless, or refused by name.

What a key means is what llama.cpp, which the format comes from, does with it. Keys of an
architecture are written here without its name in front.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clearhead.errors import CheckpointError
from clearhead.models.families.field_rules import REQUIRED, FieldRules, Refusal
from clearhead.models.families.field_values import MOST_LAYERS

SIZES = dict.fromkeys(
    ("context_length", "embedding_length", "block_count", "feed_forward_length",
     "attention.head_count"), REQUIRED,
)  # fmt: skip
ROTATING: dict[str, Any] = {
    "attention.layer_norm_rms_epsilon": REQUIRED, "attention.head_count_kv": None,
    "attention.key_length": None, "attention.value_length": None, "rope.dimension_count": None,
    "rope.freq_base": 10_000.0, "rope.scaling.type": "linear", "rope.scaling.factor": None,
    "rope.scale_linear": None, "rope.scaling.attn_factor": 1.0,
    "rope.scaling.original_context_length": None, "attention.sliding_window": None,
}  # fmt: skip
WINDOWS = {"attention.sliding_window_pattern": None, "rope.freq_base_swa": 10_000.0}
HARMLESS = {
    "vocab_size": "the token embedding has as many rows",
    "pooling_type": "logits do not depend on how embeddings are pooled",
    "rope.scaling.finetuned": "a remark about the training",
    "tensor_data_layout": "a remark about the converter",
    "attention.layer_norm_epsilon": "norms of the other kind have it",
    "attention.layer_norm_rms_epsilon": "norms of the other kind have it",
}
NO_WINDOW = "layers without a window do not use it"
NOT_APPLIED = "Gemma 3 applies none to its scores"
EXPERTS = Refusal("a mixture of experts is not known")
OTHER_SHAPE = Refusal("it belongs to another kind of model")
REFUSED: dict[str, Refusal] = {
    "attention.causal": Refusal("a decoder that looks ahead is not known", (None, True)),
    **dict.fromkeys(
        ("expert_count", "expert_used_count", "expert_shared_count", "expert_group_count",
         "expert_group_used_count", "expert_weights_scale", "expert_weights_norm",
         "expert_gating_func", "expert_group_scale", "experts_per_group", "moe_every_n_layers",
         "moe_latent_size", "expert_feed_forward_length", "expert_shared_feed_forward_length",
         "expert_chunk_feed_forward_length", "interleave_moe_layer_step",
         "leading_dense_block_count", "router_logit_softcapping"), EXPERTS,
    ),
    **dict.fromkeys(
        ("embedding_length_out", "features_length", "use_parallel_residual",
         "nextn_predict_layers", "n_deepstack_layers", "decoder_start_token_id",
         "decoder_block_count", "swin_norm", "rescale_every_n_layers", "time_mix_extra_dim",
         "time_decay_extra_dim", "token_shift_count", "full_attention_interval",
         "activation_sparsity_scale", "altup.active_idx", "altup.num_inputs",
         "embedding_length_per_layer_input", "swiglu_clamp_exp", "swiglu_clamp_shexp",
         "dense_2_feat_in", "dense_2_feat_out", "dense_3_feat_in", "dense_3_feat_out",
         "attention.max_alibi_bias", "attention.clamp_kqv", "attention.group_norm_epsilon",
         "attention.group_norm_groups", "attention.q_lora_rank", "attention.kv_lora_rank",
         "attention.decay_lora_rank", "attention.iclr_lora_rank",
         "attention.value_residual_mix_lora_rank", "attention.gate_lora_rank",
         "attention.relative_buckets_count", "attention.temperature_length",
         "attention.temperature_scale", "attention.key_length_mla", "attention.value_length_mla",
         "attention.key_length_swa", "attention.value_length_swa", "attention.shared_kv_layers",
         "attention.indexer.head_count", "attention.indexer.key_length",
         "attention.indexer.top_k", "rope.dimension_count_swa", "rope.dimension_sections",
         "ssm.conv_kernel", "ssm.inner_size", "ssm.state_size", "ssm.time_step_rank",
         "ssm.group_count", "ssm.dt_b_c_rms", "kda.head_dim", "wkv.head_size",
         "posnet.embedding_length", "posnet.block_count", "convnext.embedding_length",
         "convnext.block_count", "classifier.output_labels", "shortconv.l_cache"), OTHER_SHAPE,
    ),
    **dict.fromkeys(
        ("logit_scale", "residual_scale", "embedding_scale", "attention.scale",
         "attention.output_scale"),
        Refusal("models of this architecture are not scaled there", (None, 0, 1)),
    ),
    "rope.scaling.alpha": Refusal("this rotary scaling is not known"),
    "rope.scaling.yarn_log_multiplier": Refusal("YaRN of this kind is not known"),
    "rope.scaling.yarn_ext_factor": Refusal("YaRN of this kind is not known", (None, -1, 1)),
    "rope.scaling.yarn_attn_factor": Refusal("YaRN of this kind is not known", (None, 1)),
    "rope.scaling.yarn_beta_fast": Refusal("YaRN of this kind is not known", (None, 32)),
    "rope.scaling.yarn_beta_slow": Refusal("YaRN of this kind is not known", (None, 1)),
}  # fmt: skip


def _rules(read: Mapping[str, Any], **more: FieldRules) -> FieldRules:
    """The rules of an architecture: what it reads, and the others that apply to all of them."""
    unused = dict.fromkeys(
        ("attn_logit_softcapping", "final_logit_softcapping", "attention.sliding_window_pattern"),
        OTHER_SHAPE,
    )  # fmt: skip
    common = FieldRules({}, HARMLESS | {"rope.freq_base_swa": NO_WINDOW}, REFUSED | unused)
    return common | FieldRules({**SIZES, **read}) | more.get("own", FieldRules({}))


RULES: dict[str, FieldRules] = {
    "llama": _rules(ROTATING),
    "qwen2": _rules(ROTATING),
    "qwen3": _rules(ROTATING),
    "gemma2": _rules(
        ROTATING | WINDOWS | {
            "attention.sliding_window": 4096, "attn_logit_softcapping": 50.0,
            "final_logit_softcapping": 30.0, "rope.freq_base_swa": None,
        }
    ),
    "gemma3": _rules(
        ROTATING | WINDOWS | {"final_logit_softcapping": None},
        own=FieldRules({}, {"attn_logit_softcapping": NOT_APPLIED}),
    ),
    "gpt2": _rules(
        {"attention.layer_norm_epsilon": REQUIRED},
        own=FieldRules({}, {
            **dict.fromkeys(
                (name for name in ROTATING if name.startswith("rope.")),
                "GPT-2 has no rotary positions",
            ),
            "attention.head_count_kv": "every head of GPT-2 has its own keys and values",
            "attention.key_length": "the matrices say it already",
            "attention.value_length": "the matrices say it already",
        }, {"attention.sliding_window": OTHER_SHAPE}),
    ),
}  # fmt: skip

# Keys of the tokenizer, which text/gguf/ reads; what it does not read, with the reason.
TOKENIZER = FieldRules(
    {
        **dict.fromkeys(
            f"tokenizer.ggml.{name}" for name in
            ("model", "pre", "tokens", "token_type", "scores", "merges", "add_bos_token",
             "add_eos_token", "add_space_prefix", "remove_extra_whitespaces",
             "precompiled_charsmap", *(f"{token}_token_id" for token in (
                 "bos", "eos", "eot", "eom", "unknown", "seperator", "padding", "mask", "cls")))
        ),
        "tokenizer.chat_template": None,
    },
    {
        **dict.fromkeys(
            (f"tokenizer.ggml.{name}_token_id" for name in
             ("fim_pre", "fim_suf", "fim_mid", "fim_pad", "fim_rep", "fim_sep", "prefix", "suffix",
              "middle")), "texts are continued here, not filled in",
        ),
        "tokenizer.ggml.token_type_count": "these architectures have no segments",
        "tokenizer.ggml.add_sep_token": "only pairs of texts have a separator",
        "tokenizer.huggingface.json": "the other keys say the same",
        "tokenizer.rwkv.world": "a vocabulary of another kind of model",
        "tokenizer.chat_templates": "the names of templates beside the default one",
    },
)  # fmt: skip
TEMPLATES = "tokenizer.chat_template."  # templates beside the default one, by name

# Other names in front of keys, with the reason why they change no number of the model.
NAMESPACES = {
    "general.": "facts about the file and its author",
    "split.": "the header of the file was checked for them",
    "quantize.": "a remark about how the file was quantised",
    "imatrix.": "a remark about how the file was quantised",
}
KINDS_OF_FILES = Refusal("only whole models are read", (None, "model"))


def completed_metadata(metadata: Mapping[str, Any], architecture: str) -> dict[str, Any]:
    """The architecture's own keys without its name, with the defaults of those that are absent.

    Raises:
        CheckpointError: a key is refused, or required ones are missing; it names them.
    """
    general = FieldRules({}, {}, {"general.type": KINDS_OF_FILES})
    general.completed(metadata, where="the GGUF file")
    own = {key: _one(key, value) for key, value in _own(metadata, architecture).items()}
    return RULES[architecture].completed(own, where="the GGUF file", prefix=f"{architecture}.")


def _own(metadata: Mapping[str, Any], architecture: str) -> dict[str, Any]:
    start = f"{architecture}."
    return {key[len(start) :]: value for key, value in metadata.items() if key.startswith(start)}


def _one(key: str, value: Any) -> Any:
    """A list with a value for each layer, as one value where they are all the same."""
    if not hasattr(value, "__len__") or isinstance(value, str | bytes):
        return value
    if len(value) > MOST_LAYERS:
        raise CheckpointError(f"the GGUF file: {key} has {len(value)} entries, one for each layer?")
    values = value.tolist() if hasattr(value, "tolist") else list(value)
    return values[0] if values and all(one == values[0] for one in values) else values


def unread_metadata(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """The keys of a GGUF file that nobody knows."""
    architecture = str(metadata.get("general.architecture"))
    start, known = f"{architecture}.", (*NAMESPACES, TEMPLATES)
    own = {start + key for key in RULES[architecture].unread(_own(metadata, architecture))}
    others = [key for key in metadata if not key.startswith((start, *known))]
    unread = own.union(TOKENIZER.unread(dict.fromkeys(others)))
    return tuple(key for key in metadata if key in unread)


def one_number(fields: Mapping[str, Any], key: str) -> Any:
    """A value that must be the same for all layers."""
    value = fields[key]
    if isinstance(value, list):
        raise CheckpointError(f"the GGUF file: {key} differs between layers, which is not known.")
    return value
