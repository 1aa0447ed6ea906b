"""``save``: all of a folder appears, or nothing of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import clearhead as ch
from clearhead.checkpoints import save as save_module
from clearhead.errors import CheckpointError, InputError
from clearhead.models.build import Model, build
from clearhead.models.config import ModelConfig
from clearhead.text import WordTokenizer

IDS = torch.tensor([[3, 1, 4, 1, 5]])
CONFIG = ModelConfig(
    kind="decoder", family="llama", vocab=31, context=47, model=18, layers=2, heads=3, kv_heads=3,
    key_dim=6, feed_forward=23, gated=True,
)  # fmt: skip


def made(config: ModelConfig = CONFIG, seed: int = 0) -> Model:
    torch.manual_seed(seed)
    return build(config).eval()


def everything(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@torch.no_grad()  # with a gradient another kernel computes, and the last bits may differ
def test_what_is_written(tmp_path: Path) -> None:
    tokenizer = WordTokenizer.from_texts(["the lions left right away"])
    folder = ch.save(made(), tmp_path / "deep" / "folder", tokenizer)
    assert folder == tmp_path / "deep" / "folder"
    assert set(everything(tmp_path)) == {
        f"deep/folder/{name}" for name in ("config.json", "model.safetensors", "vocabulary.json")
    }
    fields = json.loads((folder / "config.json").read_text())
    assert fields["model_type"] == "llama"
    assert fields["dtype"] == "float32"
    loaded = ch.load(folder)
    assert torch.equal(loaded.model(IDS), made()(IDS))
    assert loaded.tokenizer is not None
    assert loaded.tokenizer.encode("the lions") == tokenizer.encode("the lions")


@pytest.mark.parametrize("kind", ["decoder", "encoder", "encoder-decoder"])
def test_our_own_kinds(tmp_path: Path, kind: str) -> None:
    more = {"encoder_layers": 1} if kind == "encoder-decoder" else {}
    head = "embedding" if kind == "encoder" else "language"
    config = ModelConfig.from_fields(
        {
            "kind": kind, "head": head, "vocab": 31, "context": 47, "model": 18, "layers": 2,
            "heads": 3, "feed_forward": 23, "positions": "alibi", "sinks": True, **more,
        }
    )  # fmt: skip
    model = made(config)
    loaded = ch.load(ch.save(model, tmp_path / "own"))
    assert loaded.config == config
    inputs = (IDS, IDS) if kind == "encoder-decoder" else (IDS,)
    assert torch.equal(loaded.model(*inputs), model(*inputs))


@torch.no_grad()  # with a gradient another kernel computes, and the last bits may differ
def test_a_model_is_replaced(tmp_path: Path) -> None:
    ch.save(made(seed=1), tmp_path / "model")
    (tmp_path / "model" / "old-notes.txt").write_text("of the old model")
    ch.save(made(seed=2), tmp_path / "model")
    assert torch.equal(ch.load(tmp_path / "model").model(IDS), made(seed=2)(IDS))
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert not (tmp_path / "model" / "old-notes.txt").exists()


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    ch.save(made(), tmp_path / "empty")
    assert (tmp_path / "empty" / "config.json").exists()


def test_other_folders_and_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.png").write_bytes(b"meow")
    (tmp_path / "file").write_text("not a folder")
    for name in ("photos", "file"):
        with pytest.raises(InputError, match="files that are not a model's; it will not be repl"):
            ch.save(made(), tmp_path / name)
    assert everything(tmp_path) == {"photos/cat.png": b"meow", "file": b"not a folder"}


@torch.no_grad()  # with a gradient another kernel computes, and the last bits may differ
def test_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    ch.save(made(), ".")
    assert torch.equal(ch.load(tmp_path / "here").model(IDS), made()(IDS))


@pytest.mark.parametrize("there", [False, True])
def test_nothing_is_left_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    if there:
        ch.save(made(seed=1), tmp_path / "model")
    before = everything(tmp_path)

    def full_disk(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(save_module, "write_safetensors", full_disk)
    with pytest.raises(CheckpointError, match=r"cannot write .*model: .*No space left on device"):
        ch.save(made(seed=2), tmp_path / "model")
    assert everything(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == (["model"] if there else [])


def test_the_old_model_comes_back_if_the_new_one_cannot_take_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = ch.save(made(seed=1), tmp_path / "model")
    before = everything(folder)
    rename = Path.rename

    def stubborn(self: Path, target: Path) -> Path:
        if self.suffix == ".part":
            raise OSError(13, "Permission denied")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", stubborn)
    with pytest.raises(CheckpointError, match="Permission denied"):
        ch.save(made(seed=2), folder)
    assert everything(folder) == before
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize(
    "change",
    [{"positions": "alibi"}, {"sinks": True}, {"norm_place": "after"}, {"value_dim": 5},
     {"output_scale": 0.5}],
)  # fmt: skip
def test_what_the_family_cannot_say_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    with pytest.raises(InputError, match=r"settings that a llama config.json cannot") as caught:
        ch.save(made(CONFIG.changed(**change)), tmp_path / "model")
    assert 'changed(family="clearhead")' in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_unknown_family(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="there is no family 'zebra'; there are llama"):
        ch.save(made(CONFIG.changed(family="zebra")), tmp_path / "model")
    assert not list(tmp_path.iterdir())


@torch.no_grad()  # with a gradient another kernel computes, and the last bits may differ
def test_a_model_in_training_is_saved_as_it_is(tmp_path: Path) -> None:
    model = made().train().requires_grad_(True)
    loaded = ch.load(ch.save(model, tmp_path / "model"))
    assert torch.equal(loaded.model(IDS), model.eval()(IDS))
    assert model.stack.norm.weight.requires_grad  # type: ignore[union-attr]


@pytest.mark.download
def test_minilm_goes_round(tmp_path: Path, default_model_files: Callable[[str], Path]) -> None:
    default_model_files("minilm")
    loaded = ch.load("minilm")
    ids = torch.tensor([[101, 2023, 2003, 102]])
    again = ch.load(ch.save(loaded.model, tmp_path / "copy", loaded.tokenizer))
    assert again.config == loaded.config
    assert torch.equal(again.model(ids), loaded.model(ids))
