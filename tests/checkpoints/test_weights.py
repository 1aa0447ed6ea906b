"""Names and shapes: from a file's tensors to a model's parameters, and back."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from clearhead.checkpoints.save import save
from clearhead.checkpoints.weights import model_from_weights, weights_of
from clearhead.errors import CheckpointError, WeightNamesError
from clearhead.models.build import Model, build
from clearhead.models.config import ModelConfig
from clearhead.models.families.family import Family, Source, family_named

SMALL: dict[str, Any] = {
    "vocab": 31, "context": 13, "model": 18, "layers": 2, "heads": 3, "feed_forward": 23,
}  # fmt: skip
BIASES: dict[str, Any] = {
    "attention_bias": True, "attention_output_bias": True, "feed_forward_bias": True,
    "norm": "layer", "positions": "learned",
}  # fmt: skip
LLAMA = ModelConfig(kind="decoder", family="llama", gated=True, key_dim=6, **SMALL)
GPT2 = ModelConfig(kind="decoder", family="gpt2", activation="gelu_tanh", **SMALL, **BIASES)
BERT = ModelConfig(
    kind="encoder", family="bert", head="masked", activation="gelu", norm_place="after",
    embedding_norm=True, segments=2, **SMALL, **BIASES,
)  # fmt: skip
T5 = ModelConfig(
    kind="encoder-decoder", family="t5", encoder_layers=3, positions="relative", key_dim=6,
    activation="relu", **SMALL,
)  # fmt: skip
CONFIGS = {"llama": LLAMA, "gpt2": GPT2, "bert": BERT, "t5": T5}


class Held:
    """Tensors in memory in place of a file."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self.tensors = dict(tensors)

    def names(self) -> list[str]:
        return list(self.tensors)

    def tensor(self, name: str) -> Tensor:
        return self.tensors[name]


def made(name: str) -> tuple[ModelConfig, Family, Model, dict[str, Tensor]]:
    torch.manual_seed(0)
    config, family = CONFIGS[name], family_named(CONFIGS[name].family)
    model = build(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_()
    return config, family, model, weights_of(model, family)


def load(config: ModelConfig, family: Family, tensors: Mapping[str, Tensor]) -> Model:
    return model_from_weights(config, family, Held(tensors), where="the file", dtype=torch.float32)


def same(one: Model, other: Model) -> bool:
    mine, theirs = one.state_dict(), other.state_dict()
    return mine.keys() == theirs.keys() and all(torch.equal(mine[k], theirs[k]) for k in mine)


@pytest.mark.parametrize("name", CONFIGS)
def test_there_and_back(name: str) -> None:
    config, family, model, tensors = made(name)
    assert same(load(config, family, tensors), model)


def test_gpt2_is_stored_transposed_and_joined() -> None:
    _, _, model, tensors = made("gpt2")
    joined = tensors["transformer.h.1.attn.c_attn.weight"]
    assert joined.shape == (18, 54)
    block = model.stack.blocks[1]  # type: ignore[union-attr, index]
    assert torch.equal(joined[:, 18:36].T, block.attention.key.weight)  # type: ignore[union-attr]
    assert tensors["transformer.h.1.mlp.c_fc.weight"].shape == (18, 23)


@pytest.mark.parametrize("name", CONFIGS)
def test_every_missing_and_unexpected_name_is_listed(name: str) -> None:
    config, family, _, tensors = made(name)
    lost = [key for key in tensors if ".1." in key][:3]
    odd = ["model.vision.weight", "extra.bias"]
    held = {key: value for key, value in tensors.items() if key not in lost}
    with pytest.raises(WeightNamesError) as caught:
        load(config, family, held | {key: torch.ones(1) for key in odd})
    assert sorted(caught.value.missing) == sorted(lost)
    assert caught.value.unexpected == odd
    assert "the file does not fit the model" in str(caught.value)
    assert all(key in str(caught.value) for key in (*lost, *odd))
    assert "2 unexpected:" in str(caught.value)


@pytest.mark.parametrize("name", ["llama", "gpt2", "bert"])
def test_the_bare_model_has_no_prefix(name: str) -> None:
    config, family, model, tensors = made(name)
    bare = {key.removeprefix(family.prefix): value for key, value in tensors.items()}
    assert bare.keys() != tensors.keys()
    assert same(load(config, family, bare), model)


def test_old_bert_spellings() -> None:
    config, family, model, tensors = made("bert")
    old = {
        key.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): value
        for key, value in tensors.items()
    }
    assert "bert.embeddings.LayerNorm.gamma" in old
    assert same(load(config, family, old), model)


def test_names_that_carry_nothing_are_ignored() -> None:
    config, family, model, tensors = made("gpt2")
    more = {
        "transformer.h.0.attn.bias": torch.ones(1, 1, 5, 5),
        "lm_head.weight": tensors["transformer.wte.weight"].clone(),
    }
    assert same(load(config, family, tensors | more), model)


def test_an_output_matrix_of_its_own_counts_though_the_config_says_tied() -> None:
    config, family, _, tensors = made("t5")
    assert config.tied
    own = torch.randn(31, 18)
    model = load(config, family, tensors | {"lm_head.weight": own})
    assert not model.config.tied
    assert torch.equal(model.head.weight, own)  # type: ignore[union-attr, arg-type]


@pytest.mark.parametrize("shape", [(23, 19), (18, 23), (23,), (1, 23, 18), ()])
def test_shapes_that_do_not_fit(shape: tuple[int, ...]) -> None:
    config, family, _, tensors = made("llama")
    name = "model.layers.1.mlp.up_proj.weight"
    wanted = rf"the file: {name} gives \({', '.join(map(str, shape))},?\); wanted was \(23, 18\)"
    with pytest.raises(CheckpointError, match=wanted):
        load(config, family, tensors | {name: torch.zeros(shape)})


@pytest.mark.parametrize("shape", [(18, 53), (54,), (3, 18, 54), ()])
def test_joined_shapes_that_do_not_fit(shape: tuple[int, ...]) -> None:
    config, family, _, tensors = made("gpt2")
    with pytest.raises(CheckpointError, match=r"c_attn.weight gives"):
        load(config, family, tensors | {"transformer.h.0.attn.c_attn.weight": torch.zeros(shape)})


def test_whole_numbers_are_no_weights() -> None:
    config, family, _, tensors = made("llama")
    name = "model.norm.weight"
    with pytest.raises(CheckpointError, match=f"{name} holds torch.int64; weights are floating"):
        load(config, family, tensors | {name: torch.ones(18).long()})


def test_more_layers_than_tensors() -> None:
    config, family, _, tensors = made("llama")
    with pytest.raises(CheckpointError, match="describes 9999 layers and holds only 20 tens"):
        load(config.changed(layers=9_999), family, tensors)


def test_dtype() -> None:
    config, family, _, tensors = made("llama")
    model = model_from_weights(config, family, Held(tensors), where="here", dtype=torch.bfloat16)
    assert {parameter.dtype for parameter in model.parameters()} == {torch.bfloat16}


def test_paired_heads_are_taken_apart() -> None:
    """Rows (0, 1), (2, 3) … of a head rotate together in GGUF; here i and i + width/2."""
    theirs = torch.arange(12.0)[:, None]  # 2 heads of 6 rows
    ours = Source("q", paired_heads=2).take(theirs)
    assert ours.flatten().tolist() == [0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11]


def test_shift_and_row() -> None:
    assert Source("norm", shift=-1.0).take(torch.tensor([1.0, 3.0])).tolist() == [0.0, 2.0]
    source = Source("bias", row=True)
    assert source.take(torch.tensor([[1.0, 3.0]])).tolist() == [1.0, 3.0]
    assert source.give([torch.tensor([1.0, 3.0])]).tolist() == [[1.0, 3.0]]


def test_loading_does_not_import_torchs_compiler(tmp_path: Path) -> None:
    """More than a second, for random numbers that the file's would replace at once."""
    save(build(BERT), tmp_path / "model")
    code = (
        "import sys, clearhead; clearhead.load(sys.argv[1]); print('torch._dynamo' in sys.modules)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "model")]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"
