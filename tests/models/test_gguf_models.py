"""GGUF files against the transformers models that they were made from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import pytest
import torch
import transformers

import clearhead as ch
from clearhead.checkpoints.gguf.file import GGUFFile
from clearhead.errors import CheckpointError, ClearheadError, InputError
from clearhead.models.families.gguf import gguf_family
from tests.shared.gguf_models import write_gguf
from tests.shared.tiny_models import (
    LLAMA,
    QWEN2,
    VOCAB,
    assert_same,
    make_reference,
    token_ids,
)

KINDS = gguf.GGMLQuantizationType
IDS = token_ids(2, 13)
GEMMA = LLAMA | {
    "head_dim": 256, "num_attention_heads": 2, "num_key_value_heads": 1, "num_hidden_layers": 7,
    "sliding_window": 5,
}  # fmt: skip
GPT2 = {
    "vocab_size": VOCAB, "n_embd": 42, "n_layer": 2, "n_head": 6, "n_positions": 1024,
    "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
MODELS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "llama": ("llama", "Llama", LLAMA),
    "llama-tied": ("llama", "Llama", LLAMA | {"tie_word_embeddings": True}),
    "llama-biased": ("llama", "Llama", LLAMA | {"attention_bias": True}),
    "llama-llama3": ("llama", "Llama", LLAMA | {"rope_parameters": {
        "rope_type": "llama3", "rope_theta": 1e3, "factor": 4.0, "low_freq_factor": 1.0,
        "high_freq_factor": 4.0, "original_max_position_embeddings": 23,
    }}),
    "llama-linear": ("llama", "Llama", LLAMA | {"rope_parameters": {
        "rope_type": "linear", "rope_theta": 1e3, "factor": 4.0,
    }}),
    "qwen2": ("qwen2", "Qwen2", QWEN2),
    "qwen3": ("qwen3", "Qwen3", LLAMA | {"head_dim": 128}),
    "gemma2": ("gemma2", "Gemma2", GEMMA),
    "gemma3": ("gemma3", "Gemma3Text", GEMMA),
    "gpt2": ("gpt2", "GPT2", GPT2),
}  # fmt: skip
UNREAD_BY_TRANSFORMERS = {
    "llama-llama3": "rope_freqs",
    "llama-linear": "rope scaling",
    "llama-biased": "attention_bias",
}


def reference(name: str) -> Any:
    _, kind, sizes = MODELS[name]
    config = getattr(transformers, f"{kind}Config")
    causal = {"GPT2": "GPT2LMHeadModel", "Gemma3Text": "Gemma3ForCausalLM"}
    entry = (causal.get(kind, f"{kind}ForCausalLM"), lambda: config(**sizes))
    return make_reference(name, entry)


pytestmark = pytest.mark.usefixtures("quiet_transformers")


@pytest.mark.parametrize("name", MODELS)
def test_f32_is_the_model_it_came_from(name: str, tmp_path: Path) -> None:
    model = reference(name)
    path = write_gguf(model, tmp_path / "tiny.gguf", MODELS[name][0])
    loaded = ch.load(path)
    wanted = model(IDS).logits
    assert wanted.std() > 0.2
    assert_same(loaded.model(IDS), wanted)
    assert loaded.config.tied == model.config.tie_word_embeddings
    assert (loaded.config.bos, loaded.config.eos, loaded.config.pad) == (1, (2,), 0)
    assert loaded.tokenizer is not None
    assert loaded.tokenizer.decode(loaded.tokenizer.encode("abc")) == "abc"


@pytest.mark.parametrize("name", [name for name in MODELS if name not in UNREAD_BY_TRANSFORMERS])
def test_transformers_reads_the_file_likewise(name: str, tmp_path: Path) -> None:
    path = write_gguf(reference(name), tmp_path / "tiny.gguf", MODELS[name][0])
    theirs = transformers.AutoModelForCausalLM.from_pretrained(
        tmp_path, gguf_file=path.name, attn_implementation="eager"
    )
    assert_same(ch.load(path).model(IDS), theirs.eval()(IDS).logits)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("llama", KINDS.F16), ("gpt2", KINDS.F16), ("qwen3", KINDS.BF16),
        ("llama", KINDS.Q8_0), ("llama", KINDS.Q4_0), ("llama", KINDS.Q5_1),
        ("qwen2", KINDS.Q8_0), ("qwen3", KINDS.Q4_1), ("gemma3", KINDS.Q4_0),
    ],
)  # fmt: skip
def test_stored_with_fewer_bits(name: str, kind: Any, tmp_path: Path, monkeypatch: Any) -> None:
    architecture, family, sizes = MODELS[name]
    if kind not in (KINDS.F16, KINDS.BF16):  # blocks are 32 long, and must fill each row
        sizes = sizes | {"hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4,
                         "num_key_value_heads": 2, "num_hidden_layers": 2}  # fmt: skip
        sizes = sizes if name == "qwen2" else sizes | {"head_dim": 32}
        if name.startswith("gemma"):
            sizes["query_pre_attn_scalar"] = 32  # llama.cpp scales by the head's width
    monkeypatch.setitem(MODELS, name, (architecture, family, sizes))
    model = reference(name)
    path = write_gguf(model, tmp_path / "tiny.gguf", architecture, kind)
    assert kind.name in {GGUFFile(path).kind(tensor) for tensor in GGUFFile(path).names()}
    assert_same(ch.load(path).model(IDS), model(IDS).logits)


@pytest.mark.parametrize("name", [name for name in MODELS if name != "llama-llama3"])
def test_a_gguf_model_can_be_saved_for_transformers(name: str, tmp_path: Path) -> None:
    model = reference(name)
    loaded = ch.load(write_gguf(model, tmp_path / "tiny.gguf", MODELS[name][0]))
    folder = ch.save(loaded.model, tmp_path / "saved")
    back = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager")
    assert_same(back.eval()(IDS).logits, model(IDS).logits)


def test_spelled_out_factors_are_saved_in_our_own_format(tmp_path: Path) -> None:
    model = reference("llama-llama3")
    ours = ch.load(write_gguf(model, tmp_path / "tiny.gguf", "llama")).model
    with pytest.raises(CheckpointError, match=r"rotary factors .* cannot be said in a conf"):
        ch.save(ours, tmp_path / "saved")
    ours.config = ours.config.changed(family="clearhead")
    again = ch.load(ch.save(ours, tmp_path / "saved")).model
    assert_same(again(IDS), model(IDS).logits)


YARN = {
    "rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 23,
}  # fmt: skip
ROPE3 = {
    "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
    "sliding_attention": {"rope_type": "default", "rope_theta": 300.0},
}  # fmt: skip
SAID_TWICE: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "a factor without a type": ("llama", {"rope_parameters": {
        "rope_type": "linear", "factor": 3.0, "rope_theta": 1e4}}, {
        "rope.scaling.type": None, "rope.scaling.factor": 3.0}),
    "the older key": ("qwen2", {"rope_parameters": {
        "rope_type": "linear", "factor": 3.0, "rope_theta": 1e4}}, {
        "rope.scaling.type": None, "rope.scaling.factor": None, "rope.scale_linear": 3.0}),
    "no scaling": ("llama", {}, {"rope.scaling.type": "none", "rope.scaling.factor": 3.0}),
    "yarn": ("llama", {"rope_parameters": YARN}, {
        "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0,
        "rope.scaling.original_context_length": 23}),
    "yarn with a gain": ("qwen3", {"rope_parameters": YARN | {"attention_factor": 1.7079441541}}, {
        "rope.scaling.type": "yarn", "rope.scaling.factor": 4.0,
        "rope.scaling.original_context_length": 23, "rope.scaling.attn_factor": 1.5}),
    "a gain alone": ("llama", {"rope_parameters": YARN | {
        "factor": 1.0, "attention_factor": 1.5}}, {"rope.scaling.attn_factor": 1.5}),
    "a pattern of windows": ("gemma2", {"layer_types": [
        "sliding_attention", "sliding_attention", "full_attention"] * 2 + ["sliding_attention"]},
        {"attention.sliding_window_pattern": 3}),
    "windows by name": ("gemma3", {"layer_types": [
        "full_attention", "sliding_attention", "sliding_attention", "full_attention",
        "full_attention", "sliding_attention", "full_attention"]},
        {"attention.sliding_window_pattern": [False, True, True, False, False, True, False]}),
    "scaling of some layers": ("gemma3", {"rope_parameters": ROPE3}, {
        "rope.scaling.factor": 8.0, "rope.freq_base_swa": 300.0}),
    "softcaps by default": ("gemma2", {}, {
        "attn_logit_softcapping": None, "final_logit_softcapping": None}),
    "a softcap that is not applied": ("gemma3", {}, {"attn_logit_softcapping": 3.0}),
    "a softcap that is": ("gemma3", {"final_logit_softcapping": 3.0}, {
        "final_logit_softcapping": 3.0}),
    "a window that no text reaches": ("llama", {}, {"attention.sliding_window": 101}),
    "lists of equal values": ("llama", {}, {
        "feed_forward_length": [67, 67], "attention.head_count": [6, 6]}),
}  # fmt: skip


@pytest.mark.parametrize("case", SAID_TWICE)
def test_keys_mean_what_the_same_config_means(case: str, tmp_path: Path, monkeypatch: Any) -> None:
    """What the keys mean was compared with llama.cpp itself; here with transformers' fields."""
    name, changes, keys = SAID_TWICE[case]
    architecture, family, sizes = MODELS[name]
    monkeypatch.setitem(MODELS, name, (architecture, family, sizes | changes))
    model = reference(name)
    loaded = ch.load(write_gguf(model, tmp_path / "tiny.gguf", architecture, keys=keys))
    assert_same(loaded.model(IDS), model(IDS).logits)
    assert loaded.unread == ()


def test_values_of_another_width(tmp_path: Path) -> None:
    """llama.cpp takes it, and no config.json can say it: compared with zeros in the wider model."""
    model = reference("llama")
    with torch.no_grad():
        for layer in model.model.layers:  # the last 4 of each head's 10 values say nothing
            layer.self_attn.v_proj.weight.view(2, 10, -1)[:, 6:] = 0
            layer.self_attn.o_proj.weight.view(42, 6, 10)[:, :, 6:] = 0
    wanted = model(IDS).logits
    with torch.no_grad():
        for layer in model.model.layers:
            attention = layer.self_attn
            values = attention.v_proj.weight.view(2, 10, -1)[:, :6].flatten(0, 1)
            output = attention.o_proj.weight.view(42, 6, 10)[:, :, :6].flatten(1)
            attention.v_proj.weight = torch.nn.Parameter(values.clone())
            attention.o_proj.weight = torch.nn.Parameter(output.clone())
    path = write_gguf(model, tmp_path / "a.gguf", "llama", keys={"attention.value_length": 6})
    loaded = ch.load(path)
    assert (loaded.config.key_dim, loaded.config.value_dim) == (10, 6)
    assert_same(loaded.model(IDS), wanted)
    with pytest.raises(InputError, match=r"settings that a llama config.json cannot say"):
        ch.save(loaded.model, tmp_path / "saved")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"attention.causal": False}, "attention.causal is False: a decoder that looks ahead"),
        ({"expert_count": 2}, "expert_count is 2: a mixture of experts is not known"),
        ({"rope.dimension_count": 6}, "rope.dimension_count is 6, and its heads are 10 wide"),
        ({"attention.sliding_window": 5}, "attention.sliding_window is 5, and llama.cpp reads no"),
        ({"attn_logit_softcapping": 5.0}, "attn_logit_softcapping is 5.0: it belongs to another"),
        ({"rope.scaling.type": "longrope"}, "rotary scaling by rope.scaling.type 'longrope'"),
    ],
)
def test_keys_that_are_refused(keys: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = write_gguf(reference("llama"), tmp_path / "a.gguf", "llama", keys=keys)
    with pytest.raises(CheckpointError, match=message):
        ch.load(path)


def test_factors_beside_other_scalings(tmp_path: Path) -> None:
    model = reference("llama-llama3")
    plain = ch.load(write_gguf(model, tmp_path / "a.gguf", "llama")).config.rotary_scaling
    keys: dict[str, Any] = {"rope.scaling.factor": 3.0}
    both = ch.load(write_gguf(model, tmp_path / "b.gguf", "llama", keys=keys)).config.rotary_scaling
    assert [3 * factor for factor in plain.factors] == list(both.factors)  # type: ignore[union-attr]
    keys["rope.scaling.type"] = "yarn"
    path = write_gguf(model, tmp_path / "c.gguf", "llama", keys=keys)
    with pytest.raises(CheckpointError, match=r"'yarn' beside rope_freqs\.weight"):
        ch.load(path)


def test_a_folder_with_one_gguf(tmp_path: Path) -> None:
    model = reference("llama")
    write_gguf(model, tmp_path / "tiny.gguf", "llama")
    assert_same(ch.load(tmp_path).model(IDS), model(IDS).logits)


SOUND: dict[str, Any] = {
    "general.architecture": "llama", "llama.embedding_length": 42, "llama.context_length": 101,
    "llama.block_count": 2, "llama.attention.head_count": 6, "llama.feed_forward_length": 67,
    "llama.attention.layer_norm_rms_epsilon": 1e-6,
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"general.architecture": "rwkv"}, "architecture is 'rwkv', which no family reads"),
        ({"general.architecture": None}, "architecture is None"),
        ({"llama.block_count": None}, "lacks llama.block_count"),
        ({"llama.attention.layer_norm_rms_epsilon": None}, "lacks llama.attention.layer_norm_rms"),
        ({"llama.rope.scaling.type": "su"}, "scaling by rope.scaling.type 'su'"),
        ({"llama.embedding_length": "x"}, None),
        ({"llama.attention.head_count": 0}, None),
        ({"llama.attention.head_count": [6, 6]}, None),
        ({"llama.attention.head_count": -6}, None),
        ({"llama.rope.freq_base": "fast"}, None),
        ({"llama.rope.freq_base": float("nan")}, None),
        ({"llama.rope.dimension_count": 5}, "llama.rope.dimension_count is 5"),
        ({"tokenizer.ggml.eos_token_id": "two"}, None),
        ({"llama.block_count": 2**63, "general.architecture": "llama"}, None),
    ],
)  # fmt: skip
def test_metadata_that_is_wrong(
    unchecked: None, tmp_path: Path, changes: dict[str, Any], message: str | None
) -> None:
    from clearhead.checkpoints.description import description_errors

    metadata = {key: value for key, value in (SOUND | changes).items() if value is not None}
    with pytest.raises(ClearheadError, match=message or "does not describe a model"):  # noqa: SIM117
        with description_errors(tmp_path / "tiny.gguf"):
            gguf_family(metadata, ["token_embd.weight"], 97)


def test_huge_block_counts_of_gemma() -> None:
    metadata = {key.replace("llama", "gemma2"): value for key, value in SOUND.items()}
    metadata |= {"general.architecture": "gemma2", "gemma2.block_count": 2**62}
    with pytest.raises(CheckpointError, match="no model has more than"):
        gguf_family(metadata, ["token_embd.weight"], 97)


def test_factors_for_another_head_width(unchecked: None) -> None:
    with pytest.raises(ClearheadError, match="wanted a factor for each of 3 pairs; got 2"):
        gguf_family(SOUND | {"llama.attention.key_length": 6}, [], 97, (1.0, 2.0))


def test_tensors_that_are_missing_or_too_many(tmp_path: Path) -> None:
    model = reference("llama")
    path = write_gguf(model, tmp_path / "tiny.gguf", "llama")
    names = GGUFFile(path).names()
    assert "blk.1.ffn_up.weight" in names
    data = path.read_bytes()
    path.write_bytes(data.replace(b"blk.1.ffn_up.weight", b"blk.7.ffn_up.weight", 1))
    with pytest.raises(CheckpointError) as caught:
        ch.load(path)
    assert "blk.1.ffn_up.weight" in str(caught.value)
    assert "blk.7.ffn_up.weight" in str(caught.value)
    path.write_bytes(data.replace(b"token_embd.weight", b"token_embe.weight", 1))
    with pytest.raises(CheckpointError, match=r"holds no token_embd.weight"):
        ch.load(path)
