"""The base of an adapter: its files and its checksum."""

from __future__ import annotations

from pathlib import Path

import pytest

from clearhead.checkpoints.adapters.base import (
    Base,
    check_base,
    checksum_of_model,
    is_adapter,
    kept_base,
    model_files,
    shared_words,
)
from clearhead.errors import CheckpointError


def filled(folder: Path, *names: str) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return folder


def test_the_files_of_a_model(tmp_path: Path) -> None:
    folder = filled(tmp_path, "config.json", "model.safetensors", "1_Pooling/config.json",
                    "tokenizer.json", "README.md", "training/run.json", "other.bin")  # fmt: skip
    names = [str(path.relative_to(folder)) for path in model_files(folder)]
    assert names == ["1_Pooling/config.json", "config.json", "model.safetensors", "tokenizer.json"]
    filled(folder, "second.safetensors", "model.gguf")
    one = model_files(folder / "second.safetensors")
    assert [p.name for p in one if p.suffix == ".safetensors"] == ["second.safetensors"]
    assert model_files(folder / "model.gguf") == [folder / "model.gguf"]


def test_the_checksum_is_of_weights_and_shape(tmp_path: Path) -> None:
    folder = filled(tmp_path / "a", "config.json", "model.safetensors", "tokenizer.json")
    before = checksum_of_model(folder)
    (folder / "tokenizer.json").write_text("another")
    assert checksum_of_model(folder) == before
    for name in ("config.json", "model.safetensors"):
        (folder / name).write_text("another")
        assert checksum_of_model(folder) != before
        (folder / name).write_text(name)
    check_base(folder, Base("a", before), folder)
    check_base(folder, Base("a", None), folder)
    with pytest.raises(CheckpointError, match="its checksum differs"):
        check_base(folder, Base("a", "0" * 64), folder)


def test_what_a_folder_holds(tmp_path: Path) -> None:
    assert not is_adapter(tmp_path) and kept_base(tmp_path) is None
    filled(tmp_path, "adapter_config.json", "training/base/config.json")
    assert is_adapter(tmp_path) and kept_base(tmp_path) == tmp_path / "training" / "base"
    filled(tmp_path, "training/base/some.gguf")
    assert kept_base(tmp_path) == tmp_path / "training" / "base" / "some.gguf"
    filled(tmp_path, "config.json")
    assert not is_adapter(tmp_path)


def test_words_for_an_error() -> None:
    assert shared_words(["a", "b"]) == "a, b"
    assert shared_words(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"
