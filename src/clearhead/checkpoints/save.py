"""``save``: a model folder that :func:`load` and, for the public families, transformers read."""

from __future__ import annotations

import json
import secrets
import shutil
from pathlib import Path

from clearhead.checkpoints.safetensors_file import write_safetensors
from clearhead.checkpoints.sentence_modules import write_sentence_modules
from clearhead.checkpoints.weights import weights_of
from clearhead.errors import CheckpointError, InputError
from clearhead.models.build import Model
from clearhead.models.families.family import family_named
from clearhead.text.tokenizer import Tokenizer


def save(model: Model, folder: str | Path, tokenizer: Tokenizer | None = None) -> Path:
    """Write config.json, model.safetensors and the tokenizer; all of it appears, or nothing.

    A model folder that is there already is replaced; any other folder with files in it is not.
    """
    folder = Path(folder).absolute()  # "." has no name of its own
    if folder.exists() and not _replaceable(folder):
        raise InputError(
            f"{folder} holds files that are not a model's; it will not be replaced.",
            hint="choose a folder that does not exist yet.",
        )
    aside = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.part")
    try:
        aside.mkdir(parents=True)
        _write(model, aside, tokenizer)
        _swap(aside, folder)
    except OSError as error:
        raise CheckpointError(
            f"cannot write {folder}: {error}.", hint="is the disk full or write-protected?"
        ) from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return folder


def _write(model: Model, folder: Path, tokenizer: Tokenizer | None) -> None:
    family = family_named(model.config.family)
    dtype = str(next(model.parameters()).dtype).removeprefix("torch.")
    fields = family.write(model.config) | {"dtype": dtype}
    said = family.read(fields).changed(dropout=model.config.dropout)  # only training knows it
    if model.config.head == "embedding":  # modules.json says it
        unit = model.config.embedding_unit
        said = said.changed(head="embedding", embedding_unit=unit)
        write_sentence_modules(folder, model.config)
    if said.resolved() != model.config.resolved():
        raise InputError(
            f"this model has settings that a {family.name} config.json cannot say.",
            hint='model.config.changed(family="clearhead") saves it in our own format.',
        )
    (folder / "config.json").write_text(json.dumps(fields, indent=2) + "\n", encoding="utf-8")
    write_safetensors(folder / "model.safetensors", weights_of(model, family))
    if tokenizer is not None:
        tokenizer.save(folder)


def _replaceable(folder: Path) -> bool:
    return folder.is_dir() and ((folder / "config.json").exists() or not any(folder.iterdir()))


def _swap(new: Path, folder: Path) -> None:
    """Put the new folder in place of the old one, which stays until the new one is there."""
    if not folder.exists():
        new.rename(folder)
        return
    old = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.old")
    folder.rename(old)
    try:
        new.rename(folder)
    except OSError:
        old.rename(folder)
        raise
    shutil.rmtree(old, ignore_errors=True)
