"""Against transformers' own weights: tiny random models of many families, fused and eager."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as hf
from torch import Tensor, nn

from clearhead.errors import InputError
from clearhead.trace.trace_file import open_trace
from clearhead.trace.watching.watch import watch
from clearhead.trace.watching.watched import Watched
from tests.shared.recorded_weights import weights_of

pytestmark = pytest.mark.filterwarnings("ignore")  # transformers warns of its own affairs


BASE: dict[str, Any] = {
    "vocab_size": 97,
    "hidden_size": 48,
    "intermediate_size": 29,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "max_position_embeddings": 61,
}
LLAMA = {**BASE, "num_key_value_heads": 2}
SEQ: dict[str, Any] = {
    "vocab_size": 97,
    "d_model": 42,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 3,
    "decoder_attention_heads": 7,
    "encoder_ffn_dim": 19,
    "decoder_ffn_dim": 23,
    "max_position_embeddings": 61,
    "pad_token_id": 0,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
}


def family(name: str) -> tuple[type[Any], Any]:
    match name:
        case "llama":
            return hf.LlamaForCausalLM, hf.LlamaConfig(**LLAMA)
        case "mistral":
            return hf.MistralForCausalLM, hf.MistralConfig(**LLAMA, sliding_window=5)
        case "qwen2":
            return hf.Qwen2ForCausalLM, hf.Qwen2Config(**LLAMA)
        case "gemma2":
            config = hf.Gemma2Config(
                **LLAMA,
                head_dim=10,
                sliding_window=5,
                attn_logit_softcapping=0.7,
                query_pre_attn_scalar=3,
            )
            return hf.Gemma2ForCausalLM, config
        case "gpt-oss":
            config = hf.GptOssConfig(
                **{**LLAMA, "intermediate_size": 32},
                head_dim=8,
                sliding_window=5,
                num_local_experts=2,
                num_experts_per_tok=1,
            )
            return hf.GptOssForCausalLM, config
        case "gpt2":
            config = hf.GPT2Config(vocab_size=97, n_embd=48, n_layer=3, n_head=6, n_positions=61)
            return hf.GPT2LMHeadModel, config
        case "falcon":
            return hf.FalconForCausalLM, hf.FalconConfig(
                vocab_size=97,
                hidden_size=48,
                num_hidden_layers=3,
                num_attention_heads=6,
                alibi=True,
                multi_query=True,
            )
        case "bloom":
            return hf.BloomForCausalLM, hf.BloomConfig(
                vocab_size=97, hidden_size=48, n_layer=3, n_head=6
            )
        case "gptj":
            return hf.GPTJForCausalLM, hf.GPTJConfig(
                vocab_size=97, n_embd=48, n_layer=3, n_head=6, rotary_dim=4, n_positions=61
            )
        case "bert":
            return hf.BertModel, hf.BertConfig(**BASE)
        case "t5":
            return hf.T5ForConditionalGeneration, hf.T5Config(
                vocab_size=97,
                d_model=42,
                d_kv=11,
                d_ff=19,
                num_layers=2,
                num_decoder_layers=2,
                num_heads=3,
                decoder_start_token_id=0,
            )
        case "bart":
            return hf.BartForConditionalGeneration, hf.BartConfig(**SEQ)
        case "marian":
            return hf.MarianMTModel, hf.MarianConfig(**{**SEQ, "pad_token_id": 96})
        case "whisper":
            config = hf.WhisperConfig(
                **{k: v for k, v in SEQ.items() if k != "max_position_embeddings"},
                num_mel_bins=5,
                max_source_positions=17,
                max_target_positions=31,
                bos_token_id=3,
            )
            return hf.WhisperForConditionalGeneration, config
        case "vit":
            config = hf.ViTConfig(
                hidden_size=48,
                num_hidden_layers=3,
                num_attention_heads=6,
                intermediate_size=29,
                image_size=12,
                patch_size=4,
            )
            return hf.ViTModel, config
    raise AssertionError(name)


FUSED = ["llama", "mistral", "qwen2", "gpt2", "falcon", "bert", "t5", "bart", "marian", "whisper",
         "vit"]  # fmt: skip
EAGER = [*FUSED, "gemma2", "gpt-oss", "bloom", "gptj"]


def inputs_of(name: str) -> dict[str, Tensor]:
    torch.manual_seed(1)
    ids, target = torch.randint(4, 90, (2, 13)), torch.randint(4, 90, (2, 7))
    if name == "vit":
        return {"pixel_values": torch.randn(2, 3, 12, 12)}
    if name == "whisper":
        return {"input_features": torch.randn(2, 5, 34), "decoder_input_ids": target}
    if name in ("t5", "bart", "marian"):
        return {"input_ids": ids, "decoder_input_ids": target}
    return {"input_ids": ids}


def padded(inputs: dict[str, Tensor], side: str) -> dict[str, Tensor]:
    real = torch.ones_like(inputs["input_ids"])
    if side == "left":
        real[1, :4] = 0
    else:
        real[1, -4:] = 0
    return {**inputs, "attention_mask": real}


def built(name: str, implementation: str) -> nn.Module:
    torch.manual_seed(0)
    kind, config = family(name)
    model: nn.Module = kind._from_config(config, attn_implementation=implementation)
    for parameter in model.parameters():  # untrained weights are small: make attention take sides
        if parameter.ndim > 1:
            parameter.data.mul_(1 if name == "t5" else 3)  # T5 does not scale its scores
        else:
            parameter.data.add_(0.1 * torch.randn_like(parameter))
    return model.eval()


def reference(
    name: str, inputs: dict[str, Tensor], implementation: str
) -> dict[str, tuple[Tensor, ...]]:
    model = built(name, "eager")
    if (name, implementation) == ("falcon", "sdpa"):
        # transformers' eager Falcon adds ALiBi to a mask that holds it already; its fused one once.
        for module in model.modules():
            if type(module).__name__ == "FalconAttention":
                module.register_forward_pre_hook(_without_alibi, with_kwargs=True)
    with torch.no_grad():
        out = model(**inputs, output_attentions=True)
    if hasattr(out, "decoder_attentions"):
        return {"E": out.encoder_attentions, "L": out.decoder_attentions, "C": out.cross_attentions}
    return {"L": out.attentions}


def _without_alibi(_module: nn.Module, args: Any, kwargs: dict[str, Any]) -> tuple[Any, Any]:
    return args, {**kwargs, "alibi": torch.zeros_like(kwargs["alibi"])}


def compare(seen: Watched, expected: dict[str, tuple[Tensor, ...]], limit: float = 1e-6) -> None:
    records = {record.facts.name: record for record in seen.records}
    assert sorted(records) == sorted(
        f"{k}{n}" for k, all in expected.items() for n in range(len(all))
    )
    for kind, layers in expected.items():
        for number, weights in enumerate(layers):
            record = records[f"{kind}{number}"]
            got = weights_of(record)
            assert got.shape == weights.shape
            assert (got - weights).abs().max() <= limit, (record.facts, (got - weights).abs().max())
            assert record.facts.kind == ("cross" if kind == "C" else "self")


@pytest.mark.parametrize(
    ("name", "implementation", "padding"),
    [
        (name, implementation, padding)
        for names, implementation in ((FUSED, "sdpa"), (EAGER, "eager"))
        for name in names
        for padding in (["none"] if name in ("vit", "whisper") else ["none", "left", "right"])
    ],
)
def test_weights_are_the_models_own(name: str, implementation: str, padding: str) -> None:
    inputs = inputs_of(name)
    if padding != "none":
        inputs = padded(inputs, padding)
    model = built(name, implementation)
    with torch.no_grad():
        plain = model(**inputs)[0]
        with watch(model, values=True) as seen:
            watched = model(**inputs)[0]
    assert torch.equal(plain, watched)
    assert seen.missed == ""
    expected = reference(name, inputs, implementation)
    if implementation == "sdpa" and padding != "none":
        expected = _without_blind_rows(seen, expected)
    compare(seen, expected)
    proof = seen.verify(rows=None)
    assert proof.exact, str(proof)


def _without_blind_rows(
    seen: Watched, expected: dict[str, tuple[Tensor, ...]]
) -> dict[str, tuple[Tensor, ...]]:
    """The fused kernel gives zeros to rows that see nothing, eager spreads them evenly."""
    changed = {}
    for kind, layers in expected.items():
        masked = []
        for number, weights in enumerate(layers):
            record = next(r for r in seen.records if r.facts.name == f"{kind}{number}")
            blind = weights_of(record).sum(-1, keepdim=True) == 0
            masked.append(weights.masked_fill(blind, 0.0))
        changed[kind] = tuple(masked)
    return changed


@pytest.mark.parametrize(
    ("kind", "config", "layers"),
    [
        (hf.AlbertModel, hf.AlbertConfig(**BASE, embedding_size=17), ["L0", "L1", "L2"]),
        (
            hf.GPTNeoModel,
            hf.GPTNeoConfig(
                vocab_size=97,
                hidden_size=48,
                num_layers=2,
                num_heads=6,
                attention_types=[[["global", "local"], 1]],
                window_size=5,
            ),
            ["L0", "L1"],
        ),
        (
            hf.XGLMModel,
            hf.XGLMConfig(vocab_size=97, d_model=48, ffn_dim=29, num_layers=2, attention_heads=6),
            ["L0", "L1"],
        ),
        (
            hf.MptModel,
            hf.MptConfig(vocab_size=97, d_model=48, n_heads=6, n_layers=2, max_seq_len=61),
            ["L0", "L1"],
        ),
        (
            hf.GPT2Model,
            hf.GPT2Config(
                vocab_size=97,
                n_embd=48,
                n_layer=2,
                n_head=6,
                reorder_and_upcast_attn=True,
                bos_token_id=0,
                eos_token_id=0,
                attn_implementation="eager",
            ),
            ["L0", "L1"],
        ),
    ],
    ids=["albert", "gpt-neo", "xglm", "mpt", "gpt2, reordered"],
)
def test_models_that_spell_attention_out_themselves(
    kind: type[Any], config: Any, layers: list[str]
) -> None:
    torch.manual_seed(0)
    model = kind._from_config(config).eval()
    inputs = padded(inputs_of("llama"), "right")
    with torch.no_grad():
        plain = model(**inputs)[0]
        with watch(model, values=True) as seen:
            watched = model(**inputs)[0]
    assert torch.equal(plain, watched)
    assert [layer.name for layer in seen.layers] == layers
    assert seen.missed == ""
    assert seen.verify(rows=None).exact


def generated(
    name: str, implementation: str, **options: Any
) -> tuple[Watched, Watched, Tensor, dict[str, Tensor]]:
    """A watched generation, and a watched forward over all that it generated."""
    model, inputs = built(name, implementation), inputs_of(name)
    inputs.pop("decoder_input_ids", None)
    model.generation_config.eos_token_id = None  # type: ignore[union-attr]
    settings = {"max_new_tokens": 9, "do_sample": False, "pad_token_id": 0, **options}
    plain = model.generate(**inputs, **settings)  # type: ignore[operator]
    with watch(model, values=True) as seen:
        text = model.generate(**inputs, **settings)  # type: ignore[operator]
    assert torch.equal(plain, text)
    decoder_only = name in ("llama", "mistral", "gpt-oss", "bloom", "falcon", "gpt2")
    ids = {"input_ids": text[:, :-1]} if decoder_only else {"decoder_input_ids": text[:, :-1]}
    with torch.no_grad(), watch(model) as whole:
        model(**{**inputs, **ids})
    return seen, whole, text, inputs


@pytest.mark.parametrize(
    ("name", "implementation", "options"),
    [
        ("llama", "sdpa", {}),
        ("llama", "eager", {}),
        ("llama", "sdpa", {"cache_implementation": "static"}),
        ("llama", "eager", {"cache_implementation": "static"}),
        ("mistral", "sdpa", {}),
        ("mistral", "sdpa", {"cache_implementation": "static"}),
        ("gpt-oss", "eager", {}),
        ("bloom", "eager", {}),
        ("falcon", "sdpa", {}),
        ("t5", "sdpa", {}),
        ("t5", "eager", {}),
        ("t5", "sdpa", {"cache_implementation": "static"}),
        ("bart", "sdpa", {}),
    ],
)
def test_generation_is_stitched_to_what_a_full_forward_sees(
    name: str, implementation: str, options: dict[str, Any]
) -> None:
    seen, whole, _, _ = generated(name, implementation, **options)
    assert len(seen.runs) == 1
    assert seen.missed == ""
    names = {record.facts.name: record for record in whole.records}
    assert len(seen.records) == len(names)
    for record in seen.records:
        other = names[record.facts.name]
        assert record.facts.causal == other.facts.causal
        assert (weights_of(record) - weights_of(other)).abs().max() < 2e-6
        assert len(record.pieces) == 1  # linear in tokens: no rule for each step
    assert seen.verify(rows=None).exact


@pytest.mark.parametrize("name", ["llama", "bart"])
def test_beams_carry_their_own_past(name: str) -> None:
    seen, _, _, _ = generated(name, "sdpa", num_beams=3)
    assert len(seen.runs) == 1
    assert seen.records[-1].query.shape[0] == 6
    assert seen.verify(rows=None).exact  # with another beam's keys, Σ weight·v would be off


def test_dropout_in_training_shows_the_weights_before_it() -> None:
    for implementation in ("sdpa", "eager"):
        model = built("bert", implementation)
        for module in model.modules():
            if type(module).__name__ == "BertSelfAttention":
                module.train()
        torch.manual_seed(2)
        plain = model(**inputs_of("bert"))[0]
        torch.manual_seed(2)
        with watch(model) as seen:
            watched = model(**inputs_of("bert"))[0]
        assert torch.equal(plain, watched)
        assert seen.records[0].facts.note == "weights before dropout"
        expected = reference("bert", inputs_of("bert"), "eager")["L"][0]
        assert (weights_of(seen.records[0]) - expected).abs().max() < 1e-6


def test_flash_kernels_are_refused_with_a_way_out() -> None:
    model = built("llama", "sdpa")
    model.config._attn_implementation = "flash_attention_2"  # type: ignore[union-attr]
    with pytest.raises(InputError, match="load it with attn_implementation='sdpa'"):
        watch(model).__enter__()


def test_transformers_is_left_as_it_was() -> None:
    from transformers.modeling_utils import AttentionInterface

    before = AttentionInterface.get_interface
    with watch(built("llama", "eager")):
        assert AttentionInterface.get_interface is not before
    assert AttentionInterface.get_interface is before


def test_tokens_are_those_that_the_model_read() -> None:
    from clearhead.text.characters import CharacterTokenizer

    tokenizer = CharacterTokenizer.from_texts(["abcdefghijklmnopqrstuvwxyz"])
    model = built("llama", "sdpa")
    text = torch.tensor([tokenizer.encode("exact")])
    with watch(model, tokenizer=tokenizer) as seen:
        model.generate(  # type: ignore[operator]
            text, max_new_tokens=3, do_sample=False, suppress_tokens=list(range(tokenizer.size, 97))
        )
    passage = seen.labels.passages[0]
    assert [token.text for token in passage.tokens[:5]] == list("exact")
    assert len(passage) == 7


@pytest.mark.parametrize("name", ["falcon", "bloom", "t5", "mistral", "gpt-oss"])
def test_a_saved_trace_holds_the_same_weights(name: str, tmp_path: Path) -> None:
    """With padding on the left, where rules and biases are the least regular."""
    model = built(name, "eager")
    with torch.no_grad(), watch(model) as seen:
        model(**padded(inputs_of(name), "left"))
    seen.save(tmp_path / "trace")
    again = open_trace(tmp_path / "trace")
    before, after = (
        {record.facts.name: weights_of(record) for record in side.records} for side in (seen, again)
    )
    assert before.keys() == after.keys()
    for layer, weights in before.items():
        torch.testing.assert_close(after[layer], weights, atol=1e-6, rtol=0)
