"""The CPU engine against torch, and against itself: batches, order, threads, processes."""

from __future__ import annotations

import copy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from clearhead.attention.rotary import YarnScaling
from clearhead.checkpoints.load import Loaded
from clearhead.engine.engine import (
    Engine,
    engine_obstacle,
    engine_runs_here,
    engine_supports_config,
)
from clearhead.engine.runner import EngineRunner, engine_supports
from clearhead.engine.weights import pack_matrix
from clearhead.errors import InputError
from clearhead.generation.runner import Runner
from clearhead.generation.torch_runner import TorchRunner
from clearhead.layers.multi_head import MultiHeadAttention
from clearhead.models.config import ModelConfig
from clearhead.models.decoder import Decoder
from clearhead.models.encoder_decoder import EncoderDecoder

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(not engine_runs_here(), reason="no OpenMP or half precision here")

SIZES: dict[str, Any] = {
    "vocab": 53, "context": 401, "model": 44, "layers": 3, "heads": 4, "feed_forward": 71,
}  # fmt: skip
BIASES = {"attention_bias": True, "attention_output_bias": True, "feed_forward_bias": True}
DECODERS: dict[str, dict[str, Any]] = {
    "llama": {"kv_heads": 2, "key_dim": 10, "gated": True},
    "qwen": {
        "kv_heads": 2, "key_dim": 14, "gated": True, "attention_bias": True,
        "attention_norm": True, "tied": False,
    },
    "gpt2": {"positions": "learned", "norm": "layer", "activation": "gelu_tanh", **BIASES},
    "post-norm": {
        "positions": "sinusoidal", "norm": "layer", "norm_place": "after", "activation": "gelu",
        "embedding_norm": True, "embedding_scale": 6.5, "output_bias": True, **BIASES,
    },
    "window": {"kv_heads": 1, "gated": True, "window": 7, "value_dim": 37, "rotary_width": 6},
    "window-scaled": {
        "gated": True, "window": 7, "window_layers": (True, False, True), "key_dim": 12,
        "window_rotary_base": 300.0, "window_rotary_scaling": YarnScaling(3.0, 50),
    },
    "gemma2": {
        "kv_heads": 2, "key_dim": 12, "gated": True, "activation": "gelu_tanh", "window": 7,
        "window_layers": (True, False, True), "norm_place": "around", "norm_offset": True,
        "attention_softcap": 1.5, "output_softcap": 9.0, "embedding_scale": 6.6,
        "attention_scale": 0.4,
    },
    "gemma3": {
        "kv_heads": 1, "key_dim": 12, "gated": True, "activation": "gelu_tanh", "window": 7,
        "window_layers": (True, True, False), "window_rotary_base": 300.0, "norm_place": "around",
        "norm_offset": True, "attention_norm": True, "embedding_scale": 6.6,
    },
    "plain": {"positions": "none", "activation": "relu", "output_scale": 0.5, "output_softcap": 9.},
}  # fmt: skip
TRANSLATORS: dict[str, dict[str, Any]] = {
    "marian": {
        "norm_place": "after", "norm": "layer", "positions": "sinusoidal-halves",
        "output_bias": True, **BIASES,
    },
    "bart": {
        "norm_place": "after", "norm": "layer", "positions": "learned", "position_offset": 2,
        "activation": "gelu", "embedding_norm": True, **BIASES,
    },
    "pre-norm": {"positions": "sinusoidal", "gated": True},
    "apart": {"positions": "sinusoidal", "shared_embedding": False},
    "all apart": {"positions": "sinusoidal", "shared_embedding": False, "tied": False},
}  # fmt: skip
ROWS = [3, 171, 1, 67]  # tokens: less and more than a chunk of keys, than a block of tokens


def decoder(name: str) -> Decoder:
    torch.manual_seed(17)
    config = ModelConfig(kind="decoder", **{**SIZES, **DECODERS[name]})
    model = Decoder(config)
    shake(model)
    return model


def translator(name: str) -> EncoderDecoder:
    torch.manual_seed(23)
    config = {**SIZES, "kind": "encoder-decoder", "encoder_layers": 2, **TRANSLATORS[name]}
    model = EncoderDecoder(ModelConfig(**config))
    shake(model)
    return model


def shake(model: nn.Module) -> None:
    """Fresh norms are 1 and biases 0, which hides mistakes."""
    for parameter in model.eval().parameters():
        if parameter.ndim == 1:
            parameter.data.add_(0.3 * torch.randn_like(parameter))


def seen(weight: Tensor) -> Tensor:
    """A matrix as the engine sees it."""
    return pack_matrix(weight).dequantised()[: weight.shape[0], : weight.shape[1]]


def quantised(model: Any) -> Any:
    """The same model for torch, with the weights that the engine sees."""
    model = copy.deepcopy(model)
    encoder = set() if isinstance(model, Decoder) else set(model.encoder.modules())
    for module in model.modules():
        if isinstance(module, MultiHeadAttention) and module not in encoder:
            layers = [module.query, module.output]
            for layer in layers if module.crossing else [*layers, module.key, module.value]:
                layer.weight.data = seen(layer.weight)
        elif type(module).__name__ == "FeedForward" and module not in encoder:
            for layer in module.children():
                assert isinstance(layer, nn.Linear)
                layer.weight.data = seen(layer.weight)
    if isinstance(model, Decoder):
        tokens = model.stack.embedding.tokens
        tokens.weight.data = seen(tokens.weight)
    if model.head.weight is not None:
        model.head.weight.data = seen(model.head.weight)
    return model


def rows_of(*counts: int) -> list[list[int]]:
    torch.manual_seed(5)
    return [torch.randint(0, SIZES["vocab"], (count,)).tolist() for count in counts]


@pytest.mark.parametrize("name", DECODERS)
def test_engine_agrees_with_torch_on_the_same_weights(name: str) -> None:
    model = decoder(name)
    ours, theirs = EngineRunner(Engine(model)), TorchRunner(quantised(model))
    for rows in (rows_of(*ROWS), rows_of(1, 2, 3, 1)):
        found, wanted = ours.extend(rows), theirs.extend(rows)
        assert found.shape == wanted.shape == (4, SIZES["vocab"])
        torch.testing.assert_close(found, wanted, rtol=0, atol=4e-3)
    assert ours.lengths == theirs.lengths
    ours.reorder([2, 1, 1])
    theirs.reorder([2, 1, 1])
    ours.crop(150)
    theirs.crop(150)
    rows = rows_of(1, 30, 1)
    torch.testing.assert_close(ours.extend(rows), theirs.extend(rows), rtol=0, atol=4e-3)
    assert ours.length == theirs.length == 180


@pytest.mark.parametrize("name", TRANSLATORS)
def test_engine_decodes_from_sources_as_torch_does(name: str) -> None:
    model = translator(name)
    for stack in {model.encoder, model.decoder}:  # torch's encoder sees them as they are
        stack.embedding.tokens.weight.data = seen(stack.embedding.tokens.weight)
    sources = rows_of(5, 151, 1)
    ours, theirs = EngineRunner(Engine(model), sources), TorchRunner(quantised(model), sources)
    for rows in (rows_of(3, 1, 2), rows_of(1, 1, 1)):
        torch.testing.assert_close(ours.extend(rows), theirs.extend(rows), rtol=0, atol=4e-3)
    ours.reorder([2, 1, 1, 0])
    theirs.reorder([2, 1, 1, 0])
    rows = rows_of(1, 1, 1, 1)
    torch.testing.assert_close(ours.extend(rows), theirs.extend(rows), rtol=0, atol=4e-3)


def test_float32_weights_are_met_within_eight_bits() -> None:
    model = decoder("llama")
    rows = rows_of(67)
    found = EngineRunner(Engine(model)).extend_all(rows[0])
    with torch.no_grad():
        wanted = model(torch.tensor(rows))[0]
    assert (found - wanted).abs().max() < 0.02 * wanted.abs().max()


def test_greedy_text_is_that_of_torch_on_the_same_weights() -> None:
    model = decoder("llama")
    ours, theirs = EngineRunner(Engine(model)), TorchRunner(quantised(model))
    texts = []
    for runner in (ours, theirs):
        ids = [int(runner.extend([[1, 2, 3]]).argmax())]
        for _ in range(40):
            ids.append(int(runner.extend([ids[-1:]]).argmax()))
        texts.append(ids)
    assert texts[0] == texts[1]


@pytest.mark.parametrize("name", ["llama", "post-norm", "window", "gemma2", "gemma3"])
def test_bits_depend_on_the_row_alone(name: str) -> None:
    engine = Engine(decoder(name))
    rows = rows_of(*ROWS)
    together = EngineRunner(engine).extend(rows)
    for row, ids in enumerate(rows):
        assert torch.equal(EngineRunner(engine).extend([ids])[0], together[row])
    every = EngineRunner(engine).extend_all(rows[1])
    stepwise = EngineRunner(engine)
    for place, token in enumerate(rows[1]):
        assert torch.equal(stepwise.extend([[token]])[0], every[place])


def test_bits_do_not_depend_on_the_number_of_threads() -> None:
    model = decoder("qwen")
    rows = rows_of(*ROWS)
    found = [EngineRunner(Engine(model, threads=count)).extend(rows) for count in (1, 2, 5)]
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


def test_crop_and_reorder_leave_the_bits_alone() -> None:
    engine = Engine(decoder("llama"))
    rows = rows_of(5, 141, 3)
    first = EngineRunner(engine)
    first.extend(rows)
    first.extend(rows_of(9, 200, 1))
    first.crop(3)
    first.reorder([1, 1, 2, 0])
    again = EngineRunner(engine)
    again.extend([rows[i][:3] for i in (1, 1, 2, 0)])
    assert first.lengths == again.lengths == [3, 3, 3, 3]
    assert torch.equal(first.extend([[1], [2], [3], [4]]), again.extend([[1], [2], [3], [4]]))


PROGRAM = """
import torch
from tests.engine.test_runner import decoder, rows_of
from clearhead.engine.engine import Engine
from clearhead.engine.runner import EngineRunner
runner = EngineRunner(Engine(decoder("llama"), threads=2))
ids = [int(runner.extend(rows_of(90)).argmax())]
for _ in range(200):
    ids.append(int(runner.extend([ids[-1:]]).argmax()))
print(ids)
"""


@pytest.mark.parametrize("name", ["window", "window-scaled", "gemma3"])
def test_layers_with_a_window_keep_the_window_only(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same bits as with a cache that keeps everything; crops near and far, beams."""
    from clearhead.engine import cache

    engine = Engine(decoder(name))
    first, second, third = rows_of(601)[0], rows_of(67)[0], rows_of(3)[0]
    found = []
    for spare in (cache.SPARE, 100_000):
        monkeypatch.setattr(cache, "SPARE", spare)
        runner = EngineRunner(engine)
        outputs = [runner.extend([first]), runner.extend([second])]
        runner.crop(590)  # 78 tokens back: they are still there
        outputs.append(runner.extend([third]))
        runner.reorder([0, 0])
        outputs.append(runner.extend([third, second]))
        runner.crop(101)  # computed again
        assert runner.lengths == [101, 101]
        outputs += [runner.extend([third, second]), runner.extend([third, third])]
        found.append(outputs)
        assert runner._cache is not None
        rooms = [kept.capacity for kept, _ in runner._cache.layers]
        assert [room for room, window in zip(rooms, engine.windows, strict=True) if window] == (
            [384 if spare == 256 else 1280] * sum(map(bool, engine.windows))
        )
    assert all(map(torch.equal, *found))


def test_two_processes_at_once_finish_with_the_same_result() -> None:
    running = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        for _ in range(2)
    ]
    texts = [process.communicate(timeout=120)[0] for process in running]
    assert texts[0] == texts[1] != ""


def test_float32_weights_can_be_let_go() -> None:
    model = decoder("llama")
    kept = EngineRunner(Engine(model)).extend([[1, 2, 3]])
    alone = Engine(model, keep_float32=False)
    assert torch.equal(EngineRunner(alone).extend([[1, 2, 3]]), kept)
    assert all(parameter.is_meta for parameter in model.stack.blocks.parameters())
    assert model.stack.embedding.tokens.weight.is_meta


def test_what_the_engine_does_not_support() -> None:
    config = ModelConfig(kind="decoder", positions="none", **SIZES)
    assert engine_supports_config(config)
    for changes in (
        {"positions": "alibi"},
        {"positions": "relative"},
        {"sinks": True},
        {"norm": "layer", "attention_norm": True},
    ):
        assert not engine_supports_config(config.changed(**changes))
    assert engine_obstacle(config.changed(positions="alibi")) == "its positions are alibi"
    with pytest.raises(InputError, match=r"does not support .* its attention has sinks"):
        Engine(Decoder(config.changed(sinks=True)))


def test_models_that_the_engine_supports(tmp_path: Path) -> None:
    model = decoder("llama")
    loaded = Loaded("tiny", tmp_path, model, model.config, None)
    assert engine_supports(loaded)
    assert isinstance(EngineRunner.of(loaded), Runner)
    sinks = Decoder(model.config.changed(sinks=True))
    assert not engine_supports(Loaded("sinks", tmp_path, sinks, sinks.config, None))
    freed = decoder("llama").to("meta")  # and no engine was made before
    assert not engine_supports(Loaded("freed", tmp_path, freed, freed.config, None))


def test_bad_input_is_refused() -> None:
    runner = EngineRunner(Engine(decoder("gpt2")))
    with pytest.raises(InputError, match="at least one token"):
        runner.extend([[]])
    with pytest.raises(InputError, match=r"0 … 52, the vocabulary; got 1 … 53"):
        runner.extend([[1, 53]])
    with pytest.raises(InputError, match="402 tokens do not fit"):
        runner.extend([[1] * 402])
    with pytest.raises(InputError, match="no rows yet"):
        runner.reorder([0])
    runner.extend([[1], [2]])
    with pytest.raises(InputError, match="this batch has 2 rows; got 1"):
        runner.extend([[1]])
    with pytest.raises(InputError, match=r"rows must be 0 … 1; got \[2\]"):
        runner.reorder([2])
    with pytest.raises(InputError, match="crop to 0 … 1 tokens"):
        runner.crop(2)
    with pytest.raises(InputError, match="no encoder"):
        EngineRunner(runner.engine, [[1]])
