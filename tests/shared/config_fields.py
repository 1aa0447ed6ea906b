"""Every field of transformers' config classes, with another value than a tiny model has there."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor

VOCAB, LENGTH = 97, 12
LLAMA: dict[str, Any] = {
    "vocab_size": VOCAB, "hidden_size": 42, "intermediate_size": 67, "num_hidden_layers": 2,
    "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 10,
    "max_position_embeddings": 101, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
QWEN2 = {name: LLAMA[name] for name in LLAMA if name != "head_dim"} | {
    "num_attention_heads": 3, "num_key_value_heads": 1, "use_sliding_window": True,
    "sliding_window": 5, "max_window_layers": 1,
}  # fmt: skip
GEMMA = LLAMA | {"sliding_window": 5, "query_pre_attn_scalar": 13, "pad_token_id": 0}
ENCODER: dict[str, Any] = {
    "vocab_size": VOCAB, "hidden_size": 42, "intermediate_size": 67, "num_hidden_layers": 2,
    "num_attention_heads": 6, "max_position_embeddings": 101, "type_vocab_size": 3,
}  # fmt: skip
DISTIL: dict[str, Any] = {
    "vocab_size": VOCAB, "dim": 42, "hidden_dim": 67, "n_layers": 2, "n_heads": 6,
    "max_position_embeddings": 101,
}  # fmt: skip
T5: dict[str, Any] = {
    "vocab_size": VOCAB, "d_model": 42, "d_ff": 67, "d_kv": 10, "num_layers": 2,
    "num_decoder_layers": 3, "num_heads": 6, "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 19, "decoder_start_token_id": 0,
}  # fmt: skip
BART: dict[str, Any] = {
    "vocab_size": VOCAB, "d_model": 42, "encoder_ffn_dim": 67, "decoder_ffn_dim": 67,
    "encoder_layers": 2, "decoder_layers": 3, "encoder_attention_heads": 6,
    "decoder_attention_heads": 6, "max_position_embeddings": 101, "bos_token_id": 0,
    "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2,
}  # fmt: skip
GPT2: dict[str, Any] = {
    "vocab_size": VOCAB, "n_embd": 42, "n_layer": 2, "n_head": 6, "n_inner": 67,
    "n_positions": 101, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Kind:
    """One class of transformers, with the fields of a tiny model of it."""

    model_type: str
    config: str
    model: str
    fields: dict[str, Any]

    def raw(self, **changes: Any) -> dict[str, Any]:
        """The config.json that somebody would write by hand."""
        kept = {"model_type": self.model_type, "architectures": [self.model]}
        return json.loads(json.dumps(kept | self.fields | changes))  # type: ignore[no-any-return]

    def config_class(self) -> Any:
        return getattr(transformers, self.config)

    def reference(self, raw: dict[str, Any]) -> Any:
        """Their model, with weights that make every part of it show."""
        given = {name: value for name, value in raw.items() if name != "model_type"}
        config = self.config_class()(**json.loads(json.dumps(given)))
        config._attn_implementation = "eager"
        torch.manual_seed(sum(map(ord, self.model)))
        model = getattr(transformers, self.model)(config).eval()
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if self.model_type == "marian" and "embed_positions" in name:
                    continue
                if parameter.ndim == 1:
                    parameter.add_(0.3 * torch.randn_like(parameter))
                else:
                    parameter.normal_(std=0.08 if ".q.w" in name or ".k.w" in name else 0.25)
            if hasattr(model, "final_logits_bias"):
                model.final_logits_bias.normal_(std=0.5)
        return model

    def save(self, model: Any, raw: dict[str, Any], folder: Path) -> Path:
        """The weights as transformers writes them, beside the config.json as it was given."""
        model.save_pretrained(folder)
        (folder / "config.json").write_text(json.dumps(raw))
        return folder

    def inputs(self) -> tuple[Tensor, ...]:
        ids = torch.randint(7, 80, (2, LENGTH), generator=torch.Generator().manual_seed(3))
        both = self.model_type in ("t5", "bart", "marian")
        return (ids, ids[:, :8].flip(1)) if both else (ids,)

    def theirs(self, model: Any) -> Tensor:
        names = ("input_ids", "decoder_input_ids")
        given = dict(zip(names, self.inputs(), strict=False))
        for part in model.modules():
            if hasattr(part, "config"):
                part.config.return_dict = True  # without it transformers' own code fails
        output = model(**given)
        return output.last_hidden_state if "logits" not in output else output.logits  # type: ignore[no-any-return]


KINDS = {
    "llama": Kind("llama", "LlamaConfig", "LlamaForCausalLM", LLAMA),
    "mistral": Kind(
        "mistral", "MistralConfig", "MistralForCausalLM", LLAMA | {"sliding_window": 5}
    ),
    "qwen2": Kind("qwen2", "Qwen2Config", "Qwen2ForCausalLM", QWEN2),
    "qwen3": Kind("qwen3", "Qwen3Config", "Qwen3ForCausalLM", QWEN2 | {"head_dim": 10}),
    "gemma2": Kind("gemma2", "Gemma2Config", "Gemma2ForCausalLM", GEMMA),
    "gemma3_text": Kind("gemma3_text", "Gemma3TextConfig", "Gemma3ForCausalLM", GEMMA),
    "gpt2": Kind("gpt2", "GPT2Config", "GPT2LMHeadModel", GPT2),
    "bert": Kind("bert", "BertConfig", "BertForMaskedLM", ENCODER),
    "bert-labels": Kind("bert", "BertConfig", "BertForSequenceClassification", ENCODER),
    "distilbert": Kind("distilbert", "DistilBertConfig", "DistilBertForMaskedLM", DISTIL),
    "distilbert-labels": Kind(
        "distilbert", "DistilBertConfig", "DistilBertForSequenceClassification", DISTIL
    ),
    "t5": Kind("t5", "T5Config", "T5ForConditionalGeneration", T5),
    "bart": Kind("bart", "BartConfig", "BartForConditionalGeneration", BART),
    "marian": Kind("marian", "MarianConfig", "MarianMTModel", BART),
}
ROPE = {"rope_type": "linear", "factor": 3.0, "rope_theta": 700.0}
LABELS = {"0": "anger", "1": "fear", "2": "joy"}

# Another value of each field: for one kind ("kind.field"), or for all of them.
OTHERS: dict[str, Any] = {
    # sizes
    "vocab_size": 89, "hidden_size": 30, "intermediate_size": 71, "num_hidden_layers": 1,
    "num_attention_heads": 2, "num_key_value_heads": 6, "head_dim": 14, "type_vocab_size": 5,
    "qwen2.num_key_value_heads": 3, "qwen3.num_key_value_heads": 3,
    "qwen2.head_dim": 10, "qwen2.num_attention_heads": 7, "qwen3.num_attention_heads": 7,
    "gpt2.num_attention_heads": 3, "bert.num_attention_heads": 3,
    "bert-labels.num_attention_heads": 3, "t5.num_attention_heads": 3,
    "max_position_embeddings": 103, "n_positions": 103, "n_embd": 36, "n_layer": 3, "n_head": 7,
    "n_inner": None, "dim": 36, "hidden_dim": 71, "n_layers": 1, "n_heads": 3, "d_model": 36,
    "d_ff": 71, "d_kv": 14, "num_layers": 1, "num_decoder_layers": 1, "num_heads": 3,
    "encoder_layers": 1, "decoder_layers": 1, "decoder_vocab_size": 89,
    "encoder_ffn_dim": 71, "decoder_ffn_dim": 71, "encoder_attention_heads": 3,
    "decoder_attention_heads": 3,
    # activations and norms
    "hidden_act": "gelu_new", "hidden_activation": "gelu", "activation_function": "relu",
    "activation": "silu", "rms_norm_eps": 0.1, "layer_norm_eps": 0.1, "layer_norm_epsilon": 0.1,
    "feed_forward_proj": "gated-silu", "dense_act_fn": "gelu", "is_gated_act": True,
    # positions
    "rope_parameters": ROPE, "rope_scaling": ROPE, "rope_theta": 700.0,
    "gemma3_text.rope_parameters": {"full_attention": ROPE, "sliding_attention": ROPE},
    "rope_local_base_freq": 300.0, "partial_rotary_factor": 0.5,
    "original_max_position_embeddings": 23, "rope_interleaved": True, "use_mrope": True,
    "relative_attention_num_buckets": 12, "relative_attention_max_distance": 23,
    "sinusoidal_pos_embds": True, "position_embedding_type": "relative_key",
    # attention
    "attention_bias": True, "mlp_bias": True, "sliding_window": 3, "use_sliding_window": False,
    "max_window_layers": 0, "layer_types": ["sliding_attention", "full_attention"],
    "gemma2.layer_types": ["full_attention", "sliding_attention"],
    "gemma3_text.layer_types": ["full_attention", "sliding_attention"],
    "mistral.layer_types": ["sliding_attention", "sliding_attention"],
    "llama.layer_types": ["full_attention", "full_attention"],
    "sliding_window_pattern": 2, "_sliding_window_pattern": 2, "query_pre_attn_scalar": 7,
    "attn_logit_softcapping": 3.0, "final_logit_softcapping": 5.0, "scale_attn_weights": False,
    "reorder_and_upcast_attn": True, "scale_attn_by_inverse_layer_idx": True,
    "is_causal": False, "use_bidirectional_attention": True, "add_cross_attention": True,
    "is_decoder": True, "attention_chunk_size": 3, "embedding_size": 7,
    "serialize_explicit_per_layer_config": True, "_experts_implementation": "eager",
    "allow_global_per_layer_attribute_access": True, "summary_last_dropout": 0.37,
    "hidden_dropout": 0.37,
    # embeddings and output
    "tie_word_embeddings": False, "llama.tie_word_embeddings": True,
    "mistral.tie_word_embeddings": True, "qwen2.tie_word_embeddings": True,
    "qwen3.tie_word_embeddings": True, "scale_embedding": True, "scale_decoder_outputs": False,
    "share_encoder_decoder_embeddings": False, "id2label": LABELS, "num_labels": 3,
    # dropout
    **dict.fromkeys(
        ("attention_dropout", "activation_dropout", "dropout", "dropout_rate", "resid_pdrop",
         "embd_pdrop", "attn_pdrop", "hidden_dropout_prob", "attention_probs_dropout_prob",
         "classifier_dropout", "seq_classif_dropout", "qa_dropout", "encoder_layerdrop",
         "decoder_layerdrop", "summary_first_dropout", "classif_dropout"), 0.37,
    ),
    # tokens
    **dict.fromkeys(
        ("bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id", "sep_token_id",
         "unk_token_id", "mask_token_id", "cls_token_id"), 5,
    ),
    # what changes nothing
    "_name_or_path": "elsewhere", "name_or_path": "elsewhere", "transformers_version": "1.2.3",
    "output_hidden_states": True, "output_attentions": True, "return_dict": False,
    "tie_last_hidden_states": True, "chunk_size_feed_forward": 4, "dtype": "float64",
    "torch_dtype": "float64", "initializer_range": 0.5, "initializer_factor": 3.0, "init_std": 0.5,
    "problem_type": "multi_label_classification", "label2id": {"a": 0, "b": 1},
    "is_encoder_decoder": True, "t5.is_encoder_decoder": False, "bart.is_encoder_decoder": False,
    "marian.is_encoder_decoder": False, "use_cache": False, "pretraining_tp": 2, "n_ctx": 7,
    "summary_type": "mean", "summary_use_proj": False, "summary_activation": "tanh",
    "summary_proj_to_labels": False, "predict_special_tokens": False, "n_special": 3,
    "tie_encoder_decoder": True, "tie_weights_": False, "gradient_checkpointing": True,
    "is_llama_config": True, "cache_implementation": "hybrid", "_num_labels": 3,
    "_attn_implementation": "eager", "_attn_implementation_autoset": True,
    "_attn_implementation_internal": "sdpa", "_commit_hash": "abc",
    "_experts_implementation_internal": "eager", "attn_implementation": "sdpa",
    "experts_implementation": "eager", "finetuning_task": "mnli", "prefix": "x",
    "force_bos_token_to_be_generated": True, "output_past": False, "tf_legacy_loss": True,
    "task_specific_params": {"a": {"num_beams": 3}}, "torchscript": True,
    "transformers.js_config": {"a": 1}, "unsloth_fixed": True, "unsloth_version": "1.2",
    "use_bfloat16": True, "directionality": "bidi", "pooler_fc_size": 7,
    "pooler_num_attention_heads": 3, "pooler_num_fc_layers": 3, "pooler_size_per_head": 7,
    "pooler_type": "first",
    # what is refused
    "quantization_config": {"quant_method": "gptq", "bits": 4},
    "per_layer_config": {"0": {"intermediate_size": 71}}, "pruned_heads": {"0": [1]},
    "cross_attention_hidden_size": 7, "fusion_config": {"a": 1}, "adapter_config": {"r": 8},
    "normalize_before": True, "add_final_layer_norm": True, "add_bias_logits": True,
    "do_blenderbot_90_layernorm": True, "extra_pos_embeddings": 7,
    "bart.normalize_embedding": False, "marian.normalize_embedding": True,
    "bart.static_position_embeddings": True, "marian.static_position_embeddings": False,
    "model_type": "mamba", "architectures": ["UnheardOf"],
}  # fmt: skip


def generation_fields() -> set[str]:
    """Settings of generation that old config.json files hold."""
    return set(transformers.GenerationConfig._get_default_generation_params())


# What transformers' code mentions of a config that is no field: methods, and what is computed.
NO_FIELDS = {
    "get_text_config", "standardize_rope_params", "is_heterogeneous", "default_theta",
    "rope_parameters_dict", "update", "num_labels", "use_return_dict", "sub_configs",
    "json", "validate_rope",
}  # fmt: skip
# Fields of models of other kinds, which code that all models share asks for.
ELSEWHERE = {"text_config", "vision_config", "image_token_id", "mm_tokens_per_image"}


def mentioned_fields(kind: Kind) -> set[str]:
    """Every attribute of a config that the code of this kind of model asks for."""
    folder = kind.model_type.removesuffix("_text")
    package = Path(transformers.__file__).parent
    paths = [package / "models" / folder / f"modeling_{folder}.py", package / "masking_utils.py",
             package / "modeling_rope_utils.py"]  # fmt: skip
    source = "\n".join(path.read_text() for path in paths)
    asked = re.findall(r"config\.(\w+)", source) + re.findall(r'config, "(\w+)"', source)
    return set(asked) - NO_FIELDS - ELSEWHERE


def their_fields(kind: Kind) -> set[str]:
    """Every field that transformers' class of this kind has, takes or asks for."""
    made = kind.config_class()
    named = {field.name for field in dataclasses.fields(made)}
    settable = {
        name
        for name, value in inspect.getmembers(made)
        if isinstance(value, property) and value.fset is not None
    }
    described = named | settable | set(made.attribute_map) | set(made(**kind.fields).to_dict())
    return described | generation_fields() | mentioned_fields(kind)


def other_value(name: str, kind: str) -> Any:
    """Another value of this field; a field without one is a gap in this table."""
    if f"{kind}.{name}" in OTHERS:
        return OTHERS[f"{kind}.{name}"]
    if name not in OTHERS and name in generation_fields():
        return 7
    return OTHERS[name]
