"""Which parameters are trained: frozen ones keep their bits, adapters learn alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import clearhead as ch
from clearhead.errors import ConfigError
from clearhead.layers.low_rank import LowRankLinear
from clearhead.training.initialisation import fresh_model
from clearhead.training.settings import TrainingSettings
from clearhead.training.sizes import language_config, pairs_config
from clearhead.training.tasks.parameters import WORDS, adapt, adapters_of, chosen, train_only
from tests.shared.gguf_models import F16, write_gguf
from tests.shared.tiny_models import make_reference, token_ids

SMALL = {"model": 12, "layers": 3, "heads": 2, "feed_forward": 10, "context": 16}
NAMES = [
    name for name, _ in fresh_model(language_config("tiny", 31, **SMALL), 3).named_parameters()
]


def layer(name: str) -> int:
    return int(name.split(".")[2]) if name.startswith("stack.blocks.") else 99


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("embeddings", lambda name: "embedding" in name),
        ("first 2", lambda name: layer(name) < 2),
        ("attention", lambda name: ".attention." in name),
        ("query, value", lambda name: ".query." in name or ".value." in name),
        ("feed-forward", lambda name: ".feed_forward." in name),
        ("stack.norm.*", lambda name: name.startswith("stack.norm.")),
        ("*.2.*.weight, embeddings", lambda name: layer(name) == 2 or "embedding" in name),
        ("", lambda _: False),
    ],
)
def test_patterns(pattern: str, wanted: object) -> None:
    assert callable(wanted)
    assert chosen(pattern, NAMES, "freeze") == {name for name in NAMES if wanted(name)}


def test_every_word_fits_something() -> None:
    both = fresh_model(pairs_config("tiny", 31, **SMALL, encoder_layers=2), 3)
    names = [name for name, _ in both.named_parameters()] + NAMES
    for word in WORDS:
        assert chosen(word, names, "freeze")
    assert any("cross_attention" in name for name in chosen("attention", names, "freeze"))


def test_patterns_that_fit_nothing() -> None:
    with pytest.raises(ConfigError, match=r"freeze: 'first 0' fits no parameter"):
        chosen("embeddings, first 0", NAMES, "freeze")
    model = fresh_model(language_config("tiny", 31, **SMALL), 3)
    with pytest.raises(ConfigError, match="lora_targets: 'embeddings' fits no parameter"):
        adapt(model, TrainingSettings(steps=1, lora=2, lora_targets="embeddings"))
    with pytest.raises(ConfigError, match="leaves nothing to train"):
        train_only(model, TrainingSettings(steps=1, freeze="all"))


@pytest.mark.parametrize("optimiser", ["muon", "adamw"])
@pytest.mark.parametrize(
    ("settings", "model"),
    [({"freeze": "embeddings, first 1"}, {}), ({"freeze": "*.weight"}, {"norm": "layer"}),
     ({"freeze": "*.norm.*, down"}, {"dropout": 0.1})],
)  # fmt: skip
def test_frozen_parameters_keep_their_bits(
    text_file: Path, tmp_path: Path, settings: dict[str, str], model: dict[str, object],
    optimiser: str,
) -> None:  # fmt: skip
    given: dict[str, Any] = {"batch_tokens": 64, "optimiser": optimiser, "warmup": 1} | settings
    small: dict[str, Any] = SMALL | model | {"family": "clearhead"} if model else SMALL
    if "norm" in model:
        small = SMALL | {"norm": "layer"}
    list(ch.train(text_file, out=tmp_path / "run", tokenizer="characters", steps=2,
                  model=small, settings=given))  # fmt: skip
    checkpoints = tmp_path / "run" / "training"
    first, last = (
        {name: file.get_tensor(name) for name in file.keys() if name.startswith("model/")}  # noqa: SIM118
        for file in map(_opened, (checkpoints / "step-00000000.safetensors",
                                  checkpoints / "step-00000002.safetensors"))
    )  # fmt: skip
    names = [name.removeprefix("model/") for name in first]
    frozen = chosen(settings["freeze"], names, "freeze")
    assert frozen and len(frozen) < len(names)
    for name in names:
        same = torch.equal(first[f"model/{name}"], last[f"model/{name}"])
        assert same == (name in frozen), name


def _opened(path: Path) -> Any:
    from safetensors import safe_open

    return safe_open(path, framework="pt")


def test_only_adapters_learn_and_begin_as_nothing() -> None:
    model = fresh_model(language_config("tiny", 31, **SMALL), 3).eval()
    ids = torch.randint(31, (2, 7))
    before = model(ids)
    adapt(model, TrainingSettings(steps=1, lora=2, seed=5))
    torch.testing.assert_close(model(ids), before)
    train_only(model, TrainingSettings(steps=1, lora=2))
    learned = {name for name, p in model.named_parameters() if p.requires_grad}
    assert len(learned) == 2 * 7 * 3 == 2 * len(adapters_of(model))
    assert all("low_rank_" in name for name in learned)
    again = fresh_model(language_config("tiny", 31, **SMALL), 3)
    adapt(again, TrainingSettings(steps=1, lora=2, seed=5))
    for name, low_rank in adapters_of(again).items():
        assert torch.equal(low_rank.a, adapters_of(model)[name].a)  # of the random seed
        assert low_rank.scale == 2.0


def test_gradients_of_adapters_flow_through_the_blocks_of_a_file(tmp_path: Path) -> None:
    """A quantised base stays quantised; the adapters learn as they would on its floats."""
    path = write_gguf(make_reference("llama"), tmp_path / "tiny.gguf", "llama", F16)
    found = []
    for dtype in (None, torch.float32):
        model = ch.load(path, dtype=dtype).model
        settings = TrainingSettings(steps=1, lora=3, seed=7)
        adapt(model, settings)
        train_only(model, settings)
        for module in model.modules():
            if isinstance(module, LowRankLinear):
                torch.nn.init.ones_(module.low_rank_b)
        model(token_ids(2, 11)).logsumexp(-1).sum().backward()
        gradients = [p.grad for p in model.parameters() if p.requires_grad]
        assert all(gradient is not None for gradient in gradients)
        found.append(gradients)
        kinds = {type(p).__name__ for p in model.parameters() if p.ndim == 2}
        assert ("QuantisedTensor" in kinds) == (dtype is None)
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)
