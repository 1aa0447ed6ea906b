"""Tiny models of every family, made by transformers out of random numbers: the references.

Sizes differ wherever axes could be swapped. Weights are large, norms and biases far from their
starting values, so that a forgotten bias or a wrong axis shows in the first digit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor

import clearhead as ch
from clearhead.checkpoints.load import Loaded

VOCAB = 97
LONGEST = 101
LLAMA: dict[str, Any] = {
    "vocab_size": VOCAB, "hidden_size": 42, "intermediate_size": 67, "num_hidden_layers": 2,
    "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 10,
    "max_position_embeddings": LONGEST, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
QWEN2 = {name: value for name, value in LLAMA.items() if name != "head_dim"} | {
    "num_attention_heads": 3,
    "num_key_value_heads": 1,
}
BERT: dict[str, Any] = {
    "vocab_size": VOCAB, "hidden_size": 42, "intermediate_size": 67, "num_hidden_layers": 2,
    "num_attention_heads": 6, "max_position_embeddings": LONGEST, "type_vocab_size": 3,
}  # fmt: skip
DISTILBERT: dict[str, Any] = {
    "vocab_size": VOCAB, "dim": 42, "hidden_dim": 67, "n_layers": 2, "n_heads": 6,
    "max_position_embeddings": LONGEST,
}  # fmt: skip
LABELS = dict(enumerate(("anger", "fear", "joy", "love", "surprise")))
T5: dict[str, Any] = {
    "vocab_size": VOCAB, "d_model": 42, "d_ff": 67, "d_kv": 10, "num_layers": 2,
    "num_decoder_layers": 3, "num_heads": 6, "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 19, "decoder_start_token_id": 0,
}  # fmt: skip
BART: dict[str, Any] = {
    "vocab_size": VOCAB, "d_model": 42, "encoder_ffn_dim": 67, "decoder_ffn_dim": 67,
    "encoder_layers": 2, "decoder_layers": 3, "encoder_attention_heads": 6,
    "decoder_attention_heads": 6, "max_position_embeddings": LONGEST, "bos_token_id": 0,
    "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2, "forced_eos_token_id": None,
}  # fmt: skip


def _gemma(kind: str, **more: Any) -> Callable[[], Any]:
    sizes = LLAMA | {"sliding_window": 5, "query_pre_attn_scalar": 13, "num_hidden_layers": 3}
    return lambda: getattr(transformers, f"{kind}Config")(**sizes | more)


def _of(kind: str, sizes: dict[str, Any], **more: Any) -> Callable[[], Any]:
    return lambda: getattr(transformers, f"{kind}Config")(**sizes | more)


def _rope(kind: str, **more: Any) -> Callable[[], Any]:
    return _of("Llama", LLAMA, rope_parameters={"rope_type": kind, "rope_theta": 1e3, **more})


LLAMA3 = {
    "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 23,
}  # fmt: skip
DECODERS: dict[str, tuple[str, Callable[[], Any]]] = {
    "llama": ("LlamaForCausalLM", _of("Llama", LLAMA)),
    "llama-biased": (
        "LlamaForCausalLM",
        _of("Llama", LLAMA, attention_bias=True, mlp_bias=True, hidden_act="gelu_pytorch_tanh"),
    ),
    "llama-linear": ("LlamaForCausalLM", _rope("linear", factor=3.0)),
    "llama-llama3": ("LlamaForCausalLM", _rope("llama3", **LLAMA3)),
    "llama-yarn": (
        "LlamaForCausalLM",
        _rope("yarn", factor=4.0, original_max_position_embeddings=23),
    ),
    "smollm": (
        "LlamaForCausalLM",
        _of("Llama", LLAMA, tie_word_embeddings=True, head_dim=14, eos_token_id=[2, 5]),
    ),
    "mistral": ("MistralForCausalLM", _of("Mistral", LLAMA, sliding_window=5)),
    "qwen2": ("Qwen2ForCausalLM", _of("Qwen2", QWEN2)),
    "qwen2-windows": (
        "Qwen2ForCausalLM",
        _of("Qwen2", QWEN2, use_sliding_window=True, sliding_window=5, max_window_layers=1,
            num_hidden_layers=3),
    ),
    "qwen3": ("Qwen3ForCausalLM", _of("Qwen3", LLAMA)),
    "gpt2": (
        "GPT2LMHeadModel",
        _of("GPT2", {"vocab_size": VOCAB, "n_embd": 42, "n_layer": 2, "n_head": 6, "n_inner": 67,
                     "n_positions": LONGEST, "bos_token_id": 1, "eos_token_id": 2}),
    ),
    "gemma2": (
        "Gemma2ForCausalLM",
        _gemma("Gemma2", attn_logit_softcapping=7.0, final_logit_softcapping=11.0),
    ),
    "gemma3": ("Gemma3ForCausalLM", _gemma("Gemma3Text", num_hidden_layers=7)),
}  # fmt: skip
ENCODERS: dict[str, tuple[str, Callable[[], Any]]] = {
    "bert": ("BertModel", _of("Bert", BERT)),
    "bert-masked": ("BertForMaskedLM", _of("Bert", BERT)),
    "bert-labels": ("BertForSequenceClassification", _of("Bert", BERT, id2label=LABELS)),
    "distilbert": ("DistilBertModel", _of("DistilBert", DISTILBERT)),
    "distilbert-masked": ("DistilBertForMaskedLM", _of("DistilBert", DISTILBERT)),
    "distilbert-labels": (
        "DistilBertForSequenceClassification",
        _of("DistilBert", DISTILBERT, id2label=LABELS),
    ),
}
ENCODER_DECODERS: dict[str, tuple[str, Callable[[], Any]]] = {
    "t5": ("T5ForConditionalGeneration", _of("T5", T5)),
    "flan-t5": (
        "T5ForConditionalGeneration",
        _of("T5", T5, feed_forward_proj="gated-gelu", tie_word_embeddings=False),
    ),
    "bart": ("BartForConditionalGeneration", _of("Bart", BART)),
    "marian": (
        "MarianMTModel",
        _of("Marian", BART, decoder_vocab_size=VOCAB, pad_token_id=96, decoder_start_token_id=96,
            activation_function="swish", scale_embedding=True),
    ),
}  # fmt: skip
ALL = DECODERS | ENCODERS | ENCODER_DECODERS


@dataclass(frozen=True)
class Tiny:
    """The reference, the folder it was saved to, and what we loaded from there."""

    name: str
    folder: Path
    theirs: Any
    loaded: Loaded

    @property
    def ours(self) -> Any:
        return self.loaded.model


def make_reference(name: str, entry: tuple[str, Callable[[], Any]] | None = None) -> Any:
    """The model of transformers, with random weights; of the list, or of another entry."""
    kind, config = ALL[name] if entry is None else entry
    torch.manual_seed(sum(map(ord, name)))
    made = config()
    made._attn_implementation = "eager"
    model = getattr(transformers, kind)(made).eval()
    if name == "flan-t5":  # transformers ties them until a checkpoint says otherwise
        model.lm_head.weight = torch.nn.Parameter(torch.empty(VOCAB, 42))
    with torch.no_grad():
        for place, parameter in model.named_parameters():
            if parameter.ndim == 1:
                parameter.add_(0.3 * torch.randn_like(parameter))
            elif name != "marian" or "embed_positions" not in place:  # waves, nothing learned
                parameter.normal_(std=0.08 if ".q.w" in place or ".k.w" in place else 0.25)
        if hasattr(model, "final_logits_bias"):
            model.final_logits_bias.normal_(std=0.5)
    model.generation_config = transformers.GenerationConfig()
    return model


def save_reference(model: Any, folder: Path, **options: Any) -> Path:
    model.save_pretrained(folder, **options)
    return folder


def make_tiny(name: str, folder: Path) -> Tiny:
    reference = make_reference(name)
    save_reference(reference, folder)
    return Tiny(name, folder, reference, ch.load(folder))


def token_ids(*shape: int, seed: int = 0) -> Tensor:
    """Random ids that mean nothing special in any of the tiny models."""
    generator = torch.Generator().manual_seed(seed + 1000 * shape[-1])
    return torch.randint(7, 90, shape, generator=generator)


def padded(lengths: tuple[int, ...], side: str, width: int | None = None) -> tuple[Tensor, Tensor]:
    """A batch of random rows, and which tokens are real; padding holds an ordinary id."""
    longest = max(lengths) if width is None else width
    ids, real = torch.full((len(lengths), longest), 11), torch.zeros(len(lengths), longest).bool()
    for row, length in enumerate(lengths):
        place = slice(0, length) if side == "right" else slice(longest - length, longest)
        ids[row, place], real[row, place] = token_ids(length, seed=row), True
    return ids, real


def standing(real: Tensor) -> Tensor:
    """transformers' position_ids of a padded batch."""
    return (real.long().cumsum(1) - 1).clamp(min=0)


def assert_same(ours: Tensor, theirs: Tensor, within: float = 1e-5) -> None:
    """The largest difference, measured by the scale of what was wanted."""
    assert ours.shape == theirs.shape
    scale = theirs.abs().max().item()
    difference = (ours - theirs).abs().max().item()
    assert difference <= within * scale, f"{difference:.2e} apart at a scale of {scale:.2f}"
