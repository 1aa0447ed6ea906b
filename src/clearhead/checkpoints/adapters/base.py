"""The model that an adapter is for: its files, its checksum, and where it is."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from clearhead.errors import CheckpointError
from clearhead.files.regular_file import reason, regular_file_size

CONFIG = "adapter_config.json"
KEPT = Path("training", "base")  # in a run's folder: the base that it was begun with
WEIGHTS = (".safetensors", ".gguf")
ENDINGS = (*WEIGHTS, ".json", ".jinja")


@dataclass(frozen=True)
class Base:
    """A model by its name (of the catalogue, of the hub, or an absolute path) and its SHA-256."""

    name: str
    sha256: str | None = None


def model_files(path: Path) -> list[Path]:
    """The files that make a model: a GGUF file, or what a model folder holds, tokenizer too."""
    if path.suffix == ".gguf":
        return [path]
    folder = path if path.is_dir() else path.parent
    found = [*folder.glob("*"), *folder.glob("*_*/config.json")]  # 1_Pooling/config.json
    if not path.is_dir():
        found = [file for file in found if file.suffix not in WEIGHTS or file == path]
    return sorted(file for file in found if file.suffix in ENDINGS and file.is_file())


def checksum_of_model(path: Path) -> str:
    """The SHA-256 of a model's weights and, beside safetensors, of its config.json.

    Raises:
        CheckpointError: a file cannot be read.
    """
    files = model_files(path)
    folder = path.parent if path.is_file() else path
    described = not any(file.suffix == ".gguf" for file in files)
    digest = hashlib.sha256()
    for file in files:
        if file.suffix in WEIGHTS or (described and file == folder / "config.json"):
            digest.update(_checksum(file))
    return digest.hexdigest()


def _checksum(path: Path) -> bytes:
    regular_file_size(path, "model")
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {reason(error)}.") from error


def kept_base(folder: Path) -> Path | None:
    """The base that a run's folder keeps: its GGUF file or its model folder; None without one."""
    kept = folder / KEPT
    if not kept.is_dir():
        return None
    found = sorted(kept.glob("*.gguf"))
    return found[0] if len(found) == 1 else kept


def check_base(path: Path, base: Base, where: Path) -> None:
    """Refuse a model that is not the one that the adapter was trained on."""
    if base.sha256 is not None and checksum_of_model(path) != base.sha256:
        raise CheckpointError(
            f"{path} is not the model that the adapter in {where} was trained on: its checksum "
            "differs.",
            hint="restore the model, or train the adapter again.",
        )


def is_adapter(path: Path) -> bool:
    """True for a folder with an adapter and no model of its own."""
    return path.is_dir() and (path / CONFIG).exists() and not (path / "config.json").exists()


def shared_words(names: Sequence[str]) -> str:
    """A few names, for an error."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
