"""``load``: every way a model may lie on a disk, and every way a description may lie about it."""

from __future__ import annotations

import json
import resource
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import clearhead as ch
from clearhead.checkpoints.load import read_config, resolve
from clearhead.errors import (
    CheckpointError,
    ClearheadError,
    InputError,
    StoreError,
    UnreadWarning,
)
from clearhead.models.build import build
from clearhead.models.config import ModelConfig
from clearhead.text import WordTokenizer

IDS = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6]])
LLAMA = ModelConfig(
    kind="decoder", family="llama", vocab=31, context=47, model=18, layers=2, heads=3, kv_heads=1,
    key_dim=6, feed_forward=23, gated=True, tied=False,
)  # fmt: skip
BERT = ModelConfig(
    kind="encoder", family="bert", head="none", vocab=31, context=47, model=18, layers=2, heads=3,
    feed_forward=23, segments=2, positions="learned", attention_bias=True,
    attention_output_bias=True, activation="gelu", feed_forward_bias=True, norm="layer",
    norm_place="after", norm_epsilon=1e-12, embedding_norm=True,
)  # fmt: skip


@pytest.fixture(autouse=True)
def as_users_do(unchecked: None) -> Iterator[None]:
    """Without the shape checks of the tests: it is our own errors that are tested here."""
    with torch.no_grad():
        yield


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    return ch.save(build(LLAMA), tmp_path_factory.mktemp("models") / "llama")


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    return ch.save(build(BERT), tmp_path_factory.mktemp("models") / "bert")


@pytest.fixture
def copied(llama: Path, tmp_path: Path) -> Callable[..., Path]:
    def copy(changes: Any = None, source: Path = llama) -> Path:
        folder = tmp_path / "copy"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(source, folder)
        if isinstance(changes, dict):
            fields = json.loads((folder / "config.json").read_text()) | changes
            fields = {name: value for name, value in fields.items() if value != "GONE"}
            (folder / "config.json").write_text(json.dumps(fields))
        elif changes is not None:
            (folder / "config.json").write_text(changes)
        return folder

    return copy


def test_a_folder(llama: Path) -> None:
    loaded = ch.load(llama)
    assert loaded.config == loaded.model.config == LLAMA
    assert loaded.path == llama
    assert loaded.tokenizer is None
    assert repr(loaded).endswith("llama decoder, 2 layers × 3 heads, 5,418 parameters)")
    assert sum(p.numel() for p in loaded.model.parameters()) == 5418
    assert torch.equal(ch.load(str(llama)).model(IDS), loaded.model(IDS))


def test_it_is_ready_to_run(llama: Path) -> None:
    model = ch.load(llama).model
    assert not model.training
    assert not any(parameter.requires_grad for parameter in model.parameters())
    assert not any(parameter.is_meta for parameter in model.parameters())


def test_a_lone_safetensors_file(llama: Path) -> None:
    alone = ch.load(llama / "model.safetensors")
    assert torch.equal(alone.model(IDS), ch.load(llama).model(IDS))


def test_several_files(llama: Path, tmp_path: Path) -> None:
    import transformers

    transformers.logging.disable_progress_bar()
    theirs = transformers.LlamaForCausalLM.from_pretrained(llama)
    theirs.save_pretrained(tmp_path / "shards", max_shard_size="8KB")
    assert len(list((tmp_path / "shards").glob("*.safetensors"))) > 2
    wanted = theirs.eval()(IDS).logits
    for path in (tmp_path / "shards", tmp_path / "shards" / "model.safetensors.index.json"):
        torch.testing.assert_close(ch.load(path).model(IDS), wanted)
    lost = next((tmp_path / "shards").glob("model-00002*"))
    lost.unlink()
    with pytest.raises(CheckpointError, match=lost.name):
        ch.load(tmp_path / "shards")


@pytest.mark.parametrize("stored", [torch.bfloat16, torch.float16])
def test_half_precision(llama: Path, tmp_path: Path, stored: torch.dtype) -> None:
    model = ch.load(llama).model.to(stored)
    folder = ch.save(model, tmp_path / "half")
    assert json.loads((folder / "config.json").read_text())["dtype"] in ("bfloat16", "float16")
    wide = ch.load(folder)
    assert {parameter.dtype for parameter in wide.model.parameters()} == {torch.float32}
    torch.testing.assert_close(wide.model(IDS), model.float()(IDS))
    narrow = ch.load(folder, dtype=torch.bfloat16).model
    assert {parameter.dtype for parameter in narrow.parameters()} == {torch.bfloat16}
    got = narrow(IDS)
    assert got.dtype == torch.bfloat16
    scale = float(wide.model(IDS).abs().max())
    torch.testing.assert_close(got.float(), wide.model(IDS), atol=0.05 * scale, rtol=0)


def test_dtype_must_be_floating_point(llama: Path) -> None:
    for dtype in (torch.int8, "float32"):
        with pytest.raises(InputError, match=r"must be a floating-point type"):
            ch.load(llama, dtype=dtype)  # type: ignore[arg-type]


def test_the_tokenizer_comes_along(llama: Path, copied: Callable[..., Path]) -> None:
    folder = copied()
    tokenizer = WordTokenizer.from_texts(["the lions left right away", "the kids"])
    tokenizer.save(folder)
    loaded = ch.load(folder)
    assert loaded.tokenizer is not None
    assert loaded.tokenizer.encode("the kids") == tokenizer.encode("the kids")


# Sentence embeddings

CHAIN = [
    {"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    {"idx": 2, "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"},
]


def sentence_folder(folder: Path, chain: Any, pooling: Any = None) -> Path:
    (folder / "modules.json").write_text(json.dumps(chain))
    if pooling is not None:
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    return folder


@pytest.mark.parametrize("pooling", [
    None,
    {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False, "word_dimension": 18},
    {"pooling_mode": "mean"},
])  # fmt: skip
def test_sentence_embeddings(bert: Path, copied: Callable[..., Path], pooling: Any) -> None:
    states = ch.load(bert).model(IDS)
    mean = states.mean(1)
    loaded = ch.load(sentence_folder(copied(source=bert), CHAIN[:2], pooling))
    assert loaded.config.head == "embedding"
    torch.testing.assert_close(loaded.model(IDS), mean)
    unit = ch.load(sentence_folder(copied(source=bert), CHAIN, pooling))
    torch.testing.assert_close(unit.model(IDS), mean / mean.norm())


@pytest.mark.parametrize(
    ("chain", "pooling", "message"),
    [
        ([*CHAIN, {"type": "models.Dense"}], None, "chains Transformer, Pooling, Normalize, Dense"),
        (CHAIN[:1], None, "chains Transformer; Transformer, Pooling and"),
        (
            CHAIN,
            {"pooling_mode_mean_tokens": False, "pooling_mode_cls_token": True},
            "only the mea",
        ),
        (
            CHAIN,
            {"pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": True},
            "only the mea",
        ),
        (CHAIN, {"pooling_mode": "lasttoken"}, "only the mean"),
        (CHAIN, [], "should hold a JSON object"),
        ([1, 2], None, "modules.json does not describe a model"),
        ({}, None, "should hold a JSON array"),
    ],
)
def test_other_sentence_chains_are_refused(
    bert: Path, copied: Callable[..., Path], chain: Any, pooling: Any, message: str
) -> None:
    with pytest.raises(CheckpointError, match=message):
        ch.load(sentence_folder(copied(source=bert), chain, pooling))


# Descriptions that are wrong


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ("", "config.json is empty"),
        ("[]", "should hold a JSON object"),
        ('{"model_type": "llama", "model_type": "llama"}', "lists 'model_type' twice"),
        ("[" * 100_000, "nested too deeply"),
        ('{"vocab_size": ' + "9" * 5000 + "}", "is not valid JSON"),
        ({"model_type": "GONE"}, "of model_type None, which no family reads"),
        ({"model_type": "mamba"}, "model_type 'mamba', which no family reads"),
        ({"model_type": ["llama"]}, "which no family reads"),
        ({"vocab_size": "GONE", "hidden_size": "GONE"}, "lacks vocab_size, hidden_size"),
        ({"hidden_size": "big"}, "does not describe a model"),
        ({"hidden_size": 18.0}, "model must be a whole number; got 18.0"),
        ({"hidden_size": -18}, "model must be 1 or more; got -18"),
        ({"hidden_size": {"a": 1}}, "does not describe a model"),
        ({"num_attention_heads": 0}, "does not describe a model"),
        ({"num_attention_heads": 0, "head_dim": None}, "does not describe a model"),
        ({"num_key_value_heads": 2}, "3 heads cannot share 2"),
        ({"head_dim": 5}, "width must be even"),
        ({"num_hidden_layers": 3}, r"(?s)9 missing:.*model\.layers\.2\.mlp\.down_proj\.weight"),
        ({"num_hidden_layers": 1}, r"(?s)9 unexpected:.*model\.layers\.1\.self_attn\.q_proj"),
        ({"vocab_size": 32}, r"embed_tokens.weight gives \(31, 18\); wanted was \(32, 18\)"),
        ({"intermediate_size": 24}, r"gives \(23, 18\); wanted was \(24, 18\)"),
        ({"rms_norm_eps": "tiny"}, "norm_epsilon must be a finite number"),
        ({"rms_norm_eps": float("nan")}, "norm_epsilon must be a finite number; got nan"),
        ({"rope_parameters": "fast"}, "does not describe a model"),
        ({"rope_parameters": {"rope_type": "linear"}}, "does not describe a model"),
        ({"rope_parameters": {"rope_type": "linear", "factor": 0}}, "must be a number above"),
        ({"rope_parameters": {"rope_type": "longrope"}}, "scaling of type 'longrope'"),
        ({"rope_parameters": {"rope_theta": 1e400}}, "rotary_base must be a finite number"),
        ({"hidden_act": "cubic"}, "hidden_act is 'cubic', an activation that is not"),
        ({"attention_bias": True}, r"(?s)8 missing:.*q_proj\.bias"),
        ({"eos_token_id": ["x"]}, "eos must be a list"),
        ({"model_type": "gpt2"}, "head_dim is 6: models of this type have nothing of the kind"),
        ({"model_type": "clearhead"}, "a model has no .*architectures"),
    ],
)  # fmt: skip
def test_wrong_descriptions(copied: Callable[..., Path], changes: Any, message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        ch.load(copied(changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"num_hidden_layers": 10**12},
        {"num_hidden_layers": 10**12, "model_type": "gemma2"},
        {"num_hidden_layers": 10**12, "model_type": "qwen2", "use_sliding_window": True,
         "sliding_window": 4},
        {"vocab_size": 10**12},
        {"hidden_size": 10**12},
        {"intermediate_size": 2**62},
        {"hidden_size": 2**40, "intermediate_size": 2**40},
        {"head_dim": 10**12},
        {"num_attention_heads": 3 * 10**9, "num_key_value_heads": 10**9},
        {"hidden_size": 10**30},
    ],
)  # fmt: skip
def test_huge_sizes_take_no_memory(copied: Callable[..., Path], changes: dict[str, Any]) -> None:
    folder = copied(changes)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(CheckpointError):
        ch.load(folder)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert after - before < 100_000  # kilobytes


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
FIELDS = [
    "model_type", "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
    "num_attention_heads", "num_key_value_heads", "head_dim", "max_position_embeddings",
    "rms_norm_eps", "rope_parameters", "rope_scaling", "rope_theta", "attention_bias", "mlp_bias",
    "tie_word_embeddings", "sliding_window", "layer_types", "eos_token_id", "architectures",
    "hidden_act", "use_sliding_window", "max_window_layers",
]  # fmt: skip


@pytest.fixture(scope="module")
def victim(llama: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("victim") / "llama"
    shutil.copytree(llama, folder)
    return folder


@settings(max_examples=150)
@given(
    changes=st.dictionaries(st.sampled_from(FIELDS), ANYTHING, min_size=1, max_size=3),
    kind=st.sampled_from(["llama", "mistral", "qwen2", "qwen3", "gemma2", "gemma3_text"]),
)
def test_any_description_loads_or_is_refused(
    llama: Path, victim: Path, changes: dict[str, Any], kind: str
) -> None:
    fields = json.loads((llama / "config.json").read_text()) | {"model_type": kind}
    fields |= {"architectures": None} | changes
    (victim / "config.json").write_text(json.dumps(fields))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnreadWarning)
        try:
            ch.load(victim)
        except ClearheadError as error:
            assert str(error)


OTHERS: dict[str, dict[str, Any]] = {
    "gpt2": {"vocab_size": 31, "n_embd": 18, "n_layer": 2, "n_head": 3, "n_positions": 47},
    "bert": {
        "vocab_size": 31, "hidden_size": 18, "intermediate_size": 23, "num_hidden_layers": 2,
        "num_attention_heads": 3, "max_position_embeddings": 47, "type_vocab_size": 2,
        "architectures": ["BertForSequenceClassification"], "id2label": {"0": "a"},
    },
    "distilbert": {
        "vocab_size": 31, "dim": 18, "hidden_dim": 23, "n_layers": 2, "n_heads": 3,
        "max_position_embeddings": 47,
    },
    "t5": {
        "vocab_size": 31, "d_model": 18, "d_ff": 23, "d_kv": 6, "num_layers": 2, "num_heads": 3,
        "relative_attention_num_buckets": 32, "relative_attention_max_distance": 128,
    },
    "marian": {
        "vocab_size": 31, "d_model": 18, "decoder_ffn_dim": 23, "decoder_layers": 2,
        "encoder_layers": 2, "decoder_attention_heads": 3, "max_position_embeddings": 47,
        "encoder_ffn_dim": 23, "encoder_attention_heads": 3, "scale_embedding": True,
    },
    "clearhead": {
        "kind": "decoder", "vocab": 31, "context": 47, "model": 18, "layers": 2, "heads": 3,
        "feed_forward": 23, "rotary_scaling": {"kind": "linear", "factor": 2.0}, "eos": [1],
    },
}  # fmt: skip


@settings(max_examples=200)
@given(st.data())
def test_any_description_of_the_other_families(tmp_path_factory: Any, data: Any) -> None:
    kind = data.draw(st.sampled_from(list(OTHERS)))
    names = st.sampled_from(list(OTHERS[kind]))
    changes = data.draw(st.dictionaries(names, ANYTHING, min_size=1, max_size=2))
    folder = tmp_path_factory.getbasetemp() / "described"
    folder.mkdir(exist_ok=True)
    fields = {"model_type": kind, **OTHERS[kind], **changes}
    (folder / "config.json").write_text(json.dumps(fields))
    try:
        _, config, _ = read_config(folder)
    except CheckpointError as error:
        assert str(error)
    else:
        assert ModelConfig.from_json(config.to_json()) == config


@pytest.mark.parametrize("kind", OTHERS)
def test_the_other_families_descriptions_are_sound(tmp_path: Path, kind: str) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": kind, **OTHERS[kind]}))
    _, config, _ = read_config(tmp_path)
    assert (config.vocab, config.model, config.layers, config.heads) == (31, 18, 2, 3)


# Places


def test_places_without_a_model(tmp_path: Path, llama: Path) -> None:
    with pytest.raises(CheckpointError, match=r"holds no config.json, which describes the model"):
        ch.load(tmp_path)
    (tmp_path / "config.json").write_text((llama / "config.json").read_text())
    with pytest.raises(CheckpointError, match=r"has neither model.safetensors nor"):
        ch.load(tmp_path)
    with pytest.raises(StoreError, match="does not exist; a folder or model file was wanted"):
        ch.load(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["no such model", "x" * 5000, "a\0b", ""])
def test_names_that_mean_nothing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ClearheadError):
        ch.load(name)


def test_the_error_names_what_there_is() -> None:
    with pytest.raises(StoreError, match="no model or path 'smolm2'") as caught:
        resolve("smolm2")
    assert "smollm2" in str(caught.value)
