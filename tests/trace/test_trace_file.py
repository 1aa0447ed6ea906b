"""Saving and opening, and files that are not what they say."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from clearhead.checkpoints.safetensors.file import SafetensorsFile, write_safetensors
from clearhead.errors import CheckpointError, InputError
from clearhead.trace.seen import Seen
from clearhead.trace.trace_file import CHECKSUM, KEY, open_trace, tensor_checksum
from clearhead.trace.watching.watch import watch
from tests.shared.synthetic import Options, passage, synthetic

OPTIONS = (
    Options(name="L0", causal=True, kv_heads=2, group=3, values=False),
    Options(name="L1", window=3, softcap=2.0, sinks=True, dtype=torch.bfloat16),
    Options(name="L2", batch=1, padded=True, bias="distance"),
    Options(name="L3", dense=True, bias="dense", dtype=torch.float64),
    Options(name="L4", bias="key"),
)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Seen, Path]:
    records = [synthetic(options).record for options in OPTIONS]
    seen = Seen(records, passage("[CLS]| They| left|ist| the| äß|🦁|.|[SEP]|x|y"))
    return seen, seen.save(tmp_path_factory.mktemp("traces") / "run.trace")


def test_what_comes_back_is_what_was_saved(saved: tuple[Seen, Path]) -> None:
    seen, path = saved
    again = open_trace(path)
    assert again.layers == seen.layers
    assert again.labels.passages == seen.labels.passages
    for record in seen.records:
        name = record.facts.name
        assert again.records[0].facts == seen.records[0].facts
        assert torch.equal(again[name].weights(), seen[name].weights())
        assert torch.equal(again[name].map(4).cells, seen[name].map(4).cells)
        if record.value is not None:
            assert torch.equal(again[name].output(), seen[name].output())
    assert again.verify().agrees
    assert torch.equal(again["L2H0"].row("🦁"), seen["L2H0"].row(6))


def test_rows_of_long_texts_come_back_bit_by_bit(tmp_path: Path) -> None:
    class Long(nn.Module):
        def forward(self, query: Tensor, key: Tensor) -> Tensor:
            return functional.scaled_dot_product_attention(query, key, key)

    torch.manual_seed(0)
    # As models have them in memory: (batch, token, head, width).
    query, key = (torch.randn(1, tokens, 1, 8).transpose(1, 2) for tokens in (50, 16_384))
    with watch(net := Long()) as seen:
        net(3 * query, key)
    again = open_trace(seen.save(tmp_path / "long.trace"))
    for row in range(0, 50, 5):
        assert torch.equal(again["L0H0"].row(row), seen["L0H0"].row(row))
    tile = (slice(7, 31), [3, 16_000, 9])
    assert torch.equal(again["L0H0"].weights(*tile), seen["L0H0"].weights(*tile))


def test_saving_again_replaces_a_trace_and_nothing_else(tmp_path: Path) -> None:
    seen = Seen([synthetic(Options()).record])
    path = tmp_path / "run.trace"
    seen.save(path)
    seen.save(path)
    assert [found.name for found in tmp_path.iterdir()] == ["run.trace"]
    other = tmp_path / "notes.txt"
    other.write_text("mine")
    with pytest.raises(InputError, match=r"notes.txt is there already and is no trace"):
        seen.save(other)
    with pytest.raises(InputError, match="is no trace; it will not be replaced"):
        seen.save(tmp_path)
    with pytest.raises(CheckpointError, match="cannot write"):
        seen.save(tmp_path / "missing" / "run.trace")


def test_opening_needs_neither_model_nor_transformers(saved: tuple[Seen, Path]) -> None:
    code = (
        "import sys; from clearhead.trace import open_trace;"
        f"seen = open_trace({str(saved[1])!r}); print(float(seen['L0H5'].row(4).sum()));"
        "print([name for name in sys.modules if name.split('.')[0] == 'transformers'"
        " or name.startswith('clearhead.models')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    total, loaded = done.stdout.splitlines()
    assert float(total) == pytest.approx(1, abs=1e-5)
    assert loaded == "[]"


def altered(
    saved: Path, path: Path, change: Callable[[dict[str, Any], dict[str, Tensor]], None]
) -> Path:
    """A copy of a saved trace, with its JSON and tensors changed."""
    file = SafetensorsFile(saved)
    about = json.loads(file.metadata[KEY])
    tensors = {name: file.tensor(name).clone() for name in file.names()}
    change(about, tensors)
    about["checksums"] = {name: tensor_checksum(held) for name, held in tensors.items()}
    write_safetensors(path, tensors, {KEY: json.dumps(about)})
    return path


def layer(number: int, **fields: Any) -> Callable[[dict[str, Any], dict[str, Tensor]], None]:
    return lambda about, tensors: about["layers"][number].update(fields)


def tensor(name: str, new: Tensor | None) -> Callable[[dict[str, Any], dict[str, Tensor]], None]:
    def change(about: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        del tensors[name]
        if new is not None:
            tensors[name] = new

    return change


HOSTILE: dict[str, tuple[Callable[[dict[str, Any], dict[str, Tensor]], None], str]] = {
    "newer": (lambda about, _: about.update(version=2), r"version 2; this clearhead reads up to 1"),
    "no version": (lambda about, _: about.update(version="1"), "it has no version"),
    "no layers": (lambda about, _: about.update(layers={}), "'layers' should be list"),
    "a layer of text": (lambda about, _: about.update(layers=["L0"]), "wanted a JSON object"),
    "name": (layer(0, name="../L0"), "'../L0' is no name of a layer"),
    "same name": (layer(0, name="L1"), "two layers have the same name"),
    "kind": (layer(0, kind="both"), "unknown kind 'both'"),
    "dtype": (layer(0, dtype="complex64"), "dtype 'complex64'"),
    "heads": (layer(0, heads=True), "'heads' should be int, and is 'True'"),
    "huge": (layer(0, key_dim=2**40), "'key_dim' is an impossible number"),
    "negative": (layer(0, kv_heads=-1), "impossible counts"),
    "infinite scale": (layer(0, scale=float("inf")), "impossible counts, scale or softcap"),
    "softcap": (layer(1, softcap=0.0), "impossible counts, scale or softcap"),
    "width": (layer(0, key_dim=6), r"query is torch.float32 of \(1, 6, 11, 5\); wanted"),
    "head numbers": (layer(0, head_numbers=[0, 0, 1, 2, 3, 4]), "do not number its 6 heads"),
    "head beyond": (layer(0, head_numbers=[0, 1, 2, 3, 4, 9]), "do not number its 6 heads"),
    "rules": (layer(0, pieces=[]), "its rules do not cover its 11 rows"),
    "rule beyond": (
        layer(4, pieces=[{"rows": 11, "keys": 12, "masked": False, "origin": None}]),
        "a rule of 11 rows over 12 keys",
    ),
    "origin": (
        layer(2, pieces=[{"rows": 11, "keys": 11, "masked": True, "origin": 2**70}]),
        "'origin' is an impossible number",
    ),
    "query missing": (tensor("0.query", None), "its query is missing"),
    "low missing": (tensor("0.0.mask.low", None), "its low is missing"),
    "query flat": (tensor("0.query", torch.ones(3)), "query has the impossible shape"),
    "query whole": (tensor("0.query", torch.ones(1, 6, 11, 5, dtype=torch.int64)), "torch.int64"),
    "key heads": (tensor("0.key", torch.ones(1, 5, 11, 5)), "6 heads cannot share 5 key heads"),
    "logsum": (tensor("0.logsum", torch.ones(1, 6, 12)), r"logsum is .* wanted \(1, 6, 11\)"),
    "sinks": (tensor("1.sinks", torch.ones(2)), "sinks is"),
    "value": (tensor("1.value", torch.ones(1, 1, 11, 8)), "value is"),
    "output": (tensor("1.output", torch.ones(1, 1, 11, 8)), "output is"),
    "low": (tensor("0.0.mask.low", torch.ones(1, 11)), "low is torch.float32"),
    "real": (tensor("2.0.mask.real", torch.ones(1, 10, dtype=torch.bool)), "real is torch.bool"),
    "dense": (tensor("3.0.mask.dense", torch.ones(1, 1, 11, 11)), "dense is torch.float32"),
    "bias": (tensor("4.0.bias.numbers", torch.ones(1, 1, 2, 11)), "numbers is"),
    "no bias": (tensor("4.0.bias.numbers", None), "a bias is numbers or diagonals"),
    "diagonals": (tensor("2.0.bias.diagonals", torch.ones(1, 1, 0)), "diagonals is"),
    "token": (
        lambda about, _: about["passages"][0].update(tokens=[[1, "a", 0, True, False]]),
        r"a token should be \[id, text, start, end, special\]",
    ),
    "token outside": (
        lambda about, _: about["passages"][0].update(tokens=[[1, "a", 5, 99, False]]),
        "the token 'a' lies outside of its text",
    ),
    "too many tokens": (
        lambda about, _: about["passages"][0].update(tokens=[[1, "a", 0, 1, False]] * 12),
        "the text has 12 tokens, but L0 saw 11 columns",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused(saved: tuple[Seen, Path], tmp_path: Path, name: str) -> None:
    change, words = HOSTILE[name]
    path = altered(saved[1], tmp_path / "bad.trace", change)
    with pytest.raises(CheckpointError, match=words):
        open_trace(path)


def test_truncated_files_are_refused(saved: tuple[Seen, Path], tmp_path: Path) -> None:
    content = saved[1].read_bytes()
    for length in (0, 5, 100, len(content) // 2, len(content) - 1):
        path = tmp_path / "short.trace"
        path.write_bytes(content[:length])
        with pytest.raises(CheckpointError):
            open_trace(path)


def test_every_flipped_bit_is_noticed(saved: tuple[Seen, Path], tmp_path: Path) -> None:
    content, path = saved[1].read_bytes(), tmp_path / "flipped.trace"
    for place in range(0, len(content), 211):
        wrong = bytearray(content)
        wrong[place] ^= 1 << place % 8
        path.write_bytes(wrong)
        with pytest.raises(CheckpointError):
            open_trace(path)


def test_what_checksums_say(
    saved: tuple[Seen, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = SafetensorsFile(saved[1])
    notes = dict(file.metadata)
    tensors = {name: file.tensor(name).clone() for name in file.names()}
    path = tmp_path / "bad.trace"
    tensors["1.value"][0, 0, 3, 2] += 1
    write_safetensors(path, tensors, notes)
    with pytest.raises(CheckpointError, match=r"the tensor 1\.value was changed after it was"):
        open_trace(path)
    monkeypatch.setattr("clearhead.trace.trace_file.LARGEST_CHECKED", 1000)
    open_trace(path)  # too large a file: opening it must stay quick
    write_safetensors(path, tensors, notes | {KEY: notes[KEY].replace("They", "they")})
    with pytest.raises(CheckpointError, match="its header was changed after it was written"):
        open_trace(path)
    monkeypatch.undo()
    about = json.loads(notes[KEY])
    del about["checksums"]
    write_safetensors(path, tensors, {KEY: json.dumps(about)})
    assert len(open_trace(path).layers) == 5  # written before there were checksums
    write_safetensors(path, tensors | {"more": torch.ones(2)}, {KEY: notes[KEY]})
    with pytest.raises(CheckpointError, match="its checksums are not those of its tensors"):
        open_trace(path)
    assert CHECKSUM in notes


def test_half_a_character_cannot_be_saved(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="half a character"):
        Seen([synthetic(Options()).record], missed="\ud800").save(tmp_path / "run.trace")


def test_foreign_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    write_safetensors(path, {"weight": torch.ones(2)})
    with pytest.raises(CheckpointError, match="is a safetensors file, but not a trace"):
        open_trace(path)
    write_safetensors(path, {"weight": torch.ones(2)}, {KEY: "[" * 100_000})
    with pytest.raises(CheckpointError, match="its JSON is bad"):
        open_trace(path)
    write_safetensors(path, {"weight": torch.ones(2)}, {KEY: "[]"})
    with pytest.raises(CheckpointError, match="it has no version"):
        open_trace(path)
    (tmp_path / "text").write_text("hello, this is no trace at all")
    with pytest.raises(CheckpointError, match="is not a sound safetensors file"):
        open_trace(tmp_path / "text")
    with pytest.raises(CheckpointError, match="cannot be read"):
        open_trace(tmp_path / "missing.trace")
    with pytest.raises(CheckpointError, match="is a folder"):
        open_trace(tmp_path)
