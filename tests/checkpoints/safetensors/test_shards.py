from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from clearhead.checkpoints.safetensors.shards import ShardedSafetensors, open_safetensors
from clearhead.errors import CheckpointError

FIRST, SECOND = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
INDEX = "model.safetensors.index.json"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_file({"a": torch.arange(6).view(2, 3)}, tmp_path / FIRST, metadata={"format": "pt"})
    save_file({"b": torch.ones(5).half(), "c": torch.zeros(7)}, tmp_path / SECOND)
    write_index(tmp_path, {"a": FIRST, "b": SECOND, "c": SECOND})
    return tmp_path


def write_index(folder: Path, weight_map: object) -> None:
    (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))


def test_shards_read_as_one(folder: Path) -> None:
    shards = open_safetensors(folder)
    assert shards.names() == ["a", "b", "c"]
    assert shards.metadata == {"format": "pt"}
    assert shards.shape("a") == (2, 3)
    assert shards.dtype("b") == torch.float16
    assert shards.tensor("a").tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(CheckpointError, match="lists no tensor 'd'"):
        shards.tensor("d")


def test_a_folder_with_one_file_and_a_file_by_itself(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"has neither model\.safetensors nor"):
        open_safetensors(tmp_path)
    save_file({"a": torch.ones(3)}, tmp_path / "model.safetensors")
    assert open_safetensors(tmp_path).names() == ["a"]
    assert open_safetensors(tmp_path / "model.safetensors").names() == ["a"]


@pytest.mark.parametrize(
    "shard",
    [
        "../model.safetensors",
        "/etc/model.safetensors",
        "sub/model.safetensors",
        "..\\model.safetensors",
        "C:model.safetensors",
        "model.bin",
        "",
        "nul\0.safetensors",
        7,
        None,
        ["model.safetensors"],
    ],
)
def test_shards_outside_the_folder_are_refused(folder: Path, shard: object) -> None:
    save_file({"a": torch.ones(3)}, folder.parent / "model.safetensors")
    write_index(folder, {"a": shard})
    with pytest.raises(
        CheckpointError, match=r"wanted the name of a \.safetensors file in the same"
    ):
        ShardedSafetensors(folder / INDEX)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "is empty"),
        ("{", "is not valid JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("[]", "should hold a JSON object"),
        ('{"weight_map": {}}', "has no weight_map"),
        ('{"weight_map": []}', "has no weight_map"),
        ('{"weight_map": {"a": "x.safetensors", "a": "y.safetensors"}}', "lists 'a' twice"),
        ('{"weight_map": {"a": "gone.safetensors"}}', r"gone\.safetensors cannot be read"),
    ],
)
def test_broken_indexes(folder: Path, text: str, match: str) -> None:
    (folder / INDEX).write_text(text)
    with pytest.raises(CheckpointError, match=match):
        open_safetensors(folder)


def test_every_disagreement_is_listed(folder: Path) -> None:
    save_file({"b": torch.ones(1), "a": torch.ones(1)}, folder / SECOND)
    write_index(folder, {"a": FIRST, "c": SECOND, "d": FIRST})
    with pytest.raises(CheckpointError, match="do not agree") as caught:
        open_safetensors(folder)
    text = str(caught.value)
    assert f"'a' is in both {FIRST} and {SECOND}" in text
    assert f"'b' is in {SECOND}, but the index does not say so" in text
    assert f"'c' is missing from {SECOND}" in text
    assert f"'d' is missing from {FIRST}" in text
