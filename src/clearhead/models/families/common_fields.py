"""Fields that every config.json of transformers may have, whatever its family."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clearhead.models.families.field_rules import FieldRules, Refusal

_REMARK = "a remark about where the file came from"
_OUTPUT = "it says what a call of transformers returns besides the result"
_SPEED = "the same numbers, computed another way"
_START = "it only matters to weights that are not trained yet"
_TASK = "it belongs to the loss of a task, not to the model"
_TOKEN = "the tokenizer knows its special tokens"
_GENERATION = "it is about generation, and generation_config.json decides about that"

HARMLESS: dict[str, str] = {
    **dict.fromkeys(
        ("_name_or_path", "name_or_path", "_commit_hash", "transformers_version", "unsloth_version",
         "unsloth_fixed", "is_llama_config", "transformers.js_config", "finetuning_task",
         "task_specific_params", "prefix"),
        _REMARK,
    ),
    **dict.fromkeys(
        ("output_hidden_states", "output_attentions", "return_dict",
         "tie_last_hidden_states", "output_past", "torchscript"),
        _OUTPUT,
    ),
    **dict.fromkeys(
        ("chunk_size_feed_forward", "_attn_implementation", "attn_implementation",
         "_attn_implementation_autoset", "_attn_implementation_internal", "experts_implementation",
         "_experts_implementation", "_experts_implementation_internal", "gradient_checkpointing",
         "use_cache",
         "use_bfloat16", "cache_implementation"),
        _SPEED,
    ),
    **dict.fromkeys(
        ("serialize_explicit_per_layer_config", "allow_global_per_layer_attribute_access"),
        "it is about per_layer_config, which is refused",
    ),
    "attention_chunk_size": "only chunked attention uses it, and layers of that kind are refused",
    **dict.fromkeys(("dtype", "torch_dtype"), "load's argument dtype decides"),
    **dict.fromkeys(("initializer_range", "initializer_factor", "init_std"), _START),
    **dict.fromkeys(("problem_type", "tf_legacy_loss"), _TASK),
    **dict.fromkeys(
        ("id2label", "label2id", "num_labels", "_num_labels", "classifier_dropout"),
        "only a model with a classification head has labels",
    ),
    **dict.fromkeys(
        ("sep_token_id", "unk_token_id", "mask_token_id", "cls_token_id", "bos_token_id",
         "eos_token_id", "decoder_start_token_id"),
        _TOKEN,
    ),
    "is_encoder_decoder": "the model_type says it already",
    "tie_encoder_decoder": "no family here can be tied that way, and transformers passes over it",
    **dict.fromkeys(
        ("assistant_confidence_threshold", "assistant_lookbehind", "bad_words_ids",
         "begin_suppress_tokens", "diversity_penalty", "do_sample", "early_stopping",
         "encoder_no_repeat_ngram_size", "encoder_repetition_penalty", "epsilon_cutoff",
         "eta_cutoff", "exponential_decay_length_penalty", "forced_bos_token_id",
         "forced_eos_token_id", "force_bos_token_to_be_generated", "length_penalty", "max_length",
         "min_length", "no_repeat_ngram_size", "num_assistant_tokens",
         "num_assistant_tokens_schedule", "num_beam_groups", "num_beams", "num_return_sequences",
         "output_scores", "remove_invalid_values", "repetition_penalty", "return_dict_in_generate",
         "suppress_tokens", "target_lookbehind", "temperature", "top_k", "top_p", "typical_p"),
        _GENERATION,
    ),
}  # fmt: skip

REFUSED: dict[str, Refusal] = {
    "quantization_config": Refusal(
        "the weights are packed in a way that is not read", (None,),
        "load the model before it was quantised, or a GGUF file of it.",
    ),
    "is_causal": Refusal(
        "a decoder that looks ahead is not known", (None, True),
        "ch.watch looks into the model as transformers runs it.",
    ),
    "per_layer_config": Refusal("layers that differ from each other are not known", (None, {})),
    "pruned_heads": Refusal("heads that were cut out are not known", (None, {})),
    "cross_attention_hidden_size": Refusal(
        "cross-attention to states of another width is not known", (None,)
    ),
    "fusion_config": Refusal("fused layers are not known", (None, {})),
    "adapter_config": Refusal("adapters are not known; merge them first", (None, {})),
}  # fmt: skip

# For families without rotary positions and without windows.
PLAIN = dict.fromkeys(
    ("rope_parameters", "rope_scaling", "rope_theta", "partial_rotary_factor", "sliding_window",
     "layer_types", "head_dim"),
    Refusal("models of this type have nothing of the kind", (None,)),
)  # fmt: skip

BOTH_SIDES = {
    "is_encoder_decoder": Refusal("a part of an encoder-decoder is not known", (None, True))
}


def family_rules(
    read: Mapping[str, Any],
    harmless: Mapping[str, str] | None = None,
    refused: Mapping[str, Refusal] | None = None,
    **more: Any,
) -> FieldRules:
    """A family's own rules, together with those of the fields that all families share."""
    common = FieldRules({"model_type": None, "architectures": None}, HARMLESS, REFUSED)
    return common | FieldRules(read, harmless or {}, refused or {}, **more)
