from __future__ import annotations

import dataclasses
import hashlib
import os
from pathlib import Path

import pytest

import clearhead as ch
from clearhead.checkpoints.load import load
from clearhead.checkpoints.store import files_checked as module
from clearhead.checkpoints.store.catalogue import DATES, CatalogueFile, Wheel
from clearhead.checkpoints.store.files_checked import files_checked
from clearhead.checkpoints.store.model_store import PACKAGE, ModelStore
from clearhead.errors import CheckpointError, StoreError


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelStore:
    """A store that holds the built-in model as if it had been fetched, with a README."""
    wheel = Wheel("dates", "1", "dates.whl", 1, "0" * 64)
    about = CatalogueFile("README.md", 5, hashlib.sha256(b"about").hexdigest())
    entry = dataclasses.replace(
        DATES, name="copied", package_folder=None, wheel=wheel, files=(*DATES.files, about)
    )
    made = ModelStore(tmp_path, {"copied": entry})
    folder = made.folder_of("copied")
    folder.mkdir(parents=True)
    for file in DATES.files:
        content = (PACKAGE / str(DATES.package_folder) / file.path).read_bytes()
        (folder / file.path).write_bytes(content)
    (folder / "README.md").write_bytes(b"about")
    monkeypatch.setattr(module, "ModelStore", lambda: made)
    return made


def flip(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 4
    before = path.stat()
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_sound_files_load(store: ModelStore) -> None:
    assert load(store.folder_of("copied")).config.layers == 1
    (store.folder_of("copied") / "README.md").write_bytes(b"notes")
    load(store.folder_of("copied"))  # nobody reads it


@pytest.mark.parametrize("file", [file.path for file in DATES.files])
def test_a_flipped_bit_in_any_file_is_noticed(store: ModelStore, file: str) -> None:
    path = store.folder_of("copied") / file
    flip(path, path.stat().st_size // 2)
    said = rf"files of copied .* are damaged: {file}: contents changed \(SHA-256 differs\)"
    with pytest.raises(StoreError, match=said) as caught:
        load(store.folder_of("copied"))
    assert caught.value.hint == "fetch them again: clearhead models pull copied"


def test_damage_that_breaks_loading_is_named_as_damage(store: ModelStore) -> None:
    path = store.folder_of("copied") / "config.json"
    flip(path, 0)  # no longer JSON
    with pytest.raises(StoreError, match=r"are damaged: config\.json") as caught:
        load(store.folder_of("copied"))
    assert isinstance(caught.value.__cause__, CheckpointError)


def test_errors_of_sound_files_and_of_other_folders_stay(store: ModelStore, tmp_path: Path) -> None:
    with (
        pytest.raises(CheckpointError, match="mine"),
        files_checked(store.path_of("copied"), store),
    ):
        raise CheckpointError("mine")
    with pytest.raises(CheckpointError, match="holds no config"):
        load(tmp_path)


def test_the_built_in_model_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def damaged(_: ModelStore, name: str) -> dict[str, str]:
        asked.append(name)
        return {"config.json": "missing"}

    monkeypatch.setattr(ModelStore, "damaged", damaged)
    with pytest.raises(StoreError, match=r"config\.json: missing") as caught:
        ch.load("dates")
    assert asked == ["dates"] and caught.value.hint == "reinstall clearhead."
