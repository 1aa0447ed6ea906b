"""GGUF files on the engine: each kind and each family against torch's float32 forward."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

import clearhead as ch
from clearhead.checkpoints.gguf.header import read_gguf_header
from clearhead.checkpoints.gguf.quantised import QuantisedTensor, holds_blocks
from clearhead.engine.engine import Engine, engine_runs_here
from clearhead.engine.kernels.layouts import PIECES
from clearhead.engine.runner import EngineRunner
from clearhead.errors import CheckpointError
from tests.shared.gguf_blocks import SCALES
from tests.shared.gguf_random import write_random_gguf
from tests.shared.tiny_models import VOCAB

pytestmark = pytest.mark.skipif(not engine_runs_here(), reason="no OpenMP or half precision here")

IDS = [3, 5, 7, 11, 13, 2, 40, 41, 42, 9, 8]
LONG = (IDS * 7)[:70]  # more than go through the layers at once
KINDS = [*PIECES, "IQ4_NL"]
MIXED = {"attn_v.weight": "Q6_K", "ffn_down.weight": "Q6_K", "token_embd.weight": "Q8_0"}


def both(path: Path) -> tuple[Engine, Any]:
    """The engine of a file, and the float32 model of the same file."""
    loaded, floats = ch.load(path), ch.load(path, dtype=torch.float32)
    assert holds_blocks(loaded.model) and not holds_blocks(floats.model)
    assert isinstance(loaded.model, ch.Decoder)
    return Engine(loaded.model), floats.model


def greedy(engine: Engine, count: int) -> list[int]:
    runner = EngineRunner(engine)
    ids = [int(runner.extend([IDS]).argmax())]
    while len(ids) < count:
        ids.append(int(runner.extend([ids[-1:]]).argmax()))
    return ids


def check(path: Path) -> None:
    engine, model = both(path)
    with torch.no_grad():
        wanted = model(torch.tensor([IDS]))[0]
        ids = list(IDS)
        for _ in range(12):
            ids.append(int(model(torch.tensor([ids]))[0, -1].argmax()))
    found = EngineRunner(engine).extend_all(IDS)
    torch.testing.assert_close(found, wanted, rtol=0, atol=2e-3 * float(wanted.abs().max()))
    assert greedy(engine, 12) == ids[len(IDS) :]


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_gives_the_logits_of_its_floats(kind: str, tmp_path: Path) -> None:
    check(write_random_gguf(tmp_path / "tiny.gguf", kind))


@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3", "gemma2", "gemma3"])
def test_each_family_with_kinds_mixed(architecture: str, tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    check(write_random_gguf(path, "Q4_K", architecture=architecture, kinds=MIXED))


def test_bits_depend_neither_on_threads_nor_on_the_cut_of_a_prompt(tmp_path: Path) -> None:
    path = write_random_gguf(tmp_path / "tiny.gguf", "Q4_K", architecture="gemma3", kinds=MIXED)
    model = ch.load(path).model
    assert isinstance(model, ch.Decoder)
    every = EngineRunner(Engine(model, threads=1)).extend_all(IDS)
    for threads in (2, 3):
        assert torch.equal(EngineRunner(Engine(model, threads=threads)).extend_all(IDS), every)
    pieces = EngineRunner(Engine(model, threads=2))
    for start, stop in ((0, 1), (1, 6), (6, 11)):
        assert torch.equal(pieces.extend([IDS[start:stop]])[0], every[stop - 1])


def test_the_tiles_are_as_large_as_the_file(tmp_path: Path) -> None:
    engine, _ = both(write_random_gguf(tmp_path / "tiny.gguf", "Q4_K"))
    weights = [p for p in engine.model.parameters() if isinstance(p, QuantisedTensor)]
    stored = sum(weight.blocks.nbytes for weight in weights)
    padding = (-VOCAB % 32) * 144  # rows that fill up the last tiles of the vocabulary
    assert engine.weight_bytes == stored + padding


def test_torch_runs_the_model_with_the_bits_of_the_floats(tmp_path: Path) -> None:
    path = write_random_gguf(tmp_path / "tiny.gguf", "Q4_K", kinds=MIXED)
    loaded, floats = ch.load(path), ch.load(path, dtype=torch.float32)
    Engine(loaded.model, keep_float32=False)  # type: ignore[arg-type]
    for count in (3, 50):
        ids = torch.randint(0, VOCAB, (1, count))
        with torch.no_grad():
            assert torch.equal(loaded.model(ids), floats.model(ids))


@pytest.mark.parametrize("kind", KINDS)
def test_bits_of_each_kind_depend_neither_on_threads_nor_on_the_cut_nor_on_other_rows(
    kind: str, tmp_path: Path
) -> None:
    model = ch.load(write_random_gguf(tmp_path / "tiny.gguf", kind)).model
    assert isinstance(model, ch.Decoder)
    every = EngineRunner(Engine(model, threads=1)).extend_all(LONG)
    pieces = EngineRunner(Engine(model, threads=3))
    for start, stop in pairwise((0, 1, 3, 22, 69, 70)):
        assert torch.equal(pieces.extend([LONG[start:stop]])[0], every[stop - 1])
    together = EngineRunner(Engine(model, threads=2)).extend([LONG[:9], IDS, LONG])
    assert torch.equal(together[[0, 2]], every[[8, 69]])


@pytest.mark.parametrize("kind", KINDS)
def test_a_truncated_file_is_refused_before_anything_is_made(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_random_gguf(tmp_path / "tiny.gguf", kind)
    monkeypatch.setattr("clearhead.checkpoints.load.model_from_weights", None)
    data = path.read_bytes()
    for size in (len(data) - 1, len(data) // 2, 100):
        path.write_bytes(data[:size])
        with pytest.raises(CheckpointError, match="sound GGUF"):
            ch.load(path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_number_is_told_by_every_logit(kind: str, tmp_path: Path) -> None:
    path = write_random_gguf(tmp_path / "tiny.gguf", kind)
    places = read_gguf_header(path).tensors
    whole = path.read_bytes()
    dtype = {"BF16": torch.bfloat16, "F32": torch.float32}.get(kind, torch.float16)
    for name, damage in {"attn_k": math.inf, "ffn_down": math.nan}.items():
        number = torch.tensor([damage], dtype=dtype).view(torch.uint8).numpy().tobytes()
        start = places[f"blk.1.{name}.weight"].start + SCALES.get(kind, (0,))[0]
        path.write_bytes(whole[:start] + number + whole[start + len(number) :])
        model = ch.load(path).model
        assert isinstance(model, ch.Decoder)
        assert not EngineRunner(Engine(model)).extend([IDS]).isfinite().any(), name
