"""``save``: a model folder that ``load`` and, for the public families, transformers read."""

from __future__ import annotations

import shutil
from pathlib import Path

from clearhead.arguments import path, shown
from clearhead.checkpoints.generation_defaults import FILE, GenerationDefaults
from clearhead.checkpoints.safetensors.file import write_safetensors
from clearhead.checkpoints.sentence_modules import write_sentence_modules
from clearhead.checkpoints.weights import weights_of
from clearhead.errors import CheckpointError, InputError
from clearhead.files.atomic_write import temporary_path
from clearhead.files.json_file import write_json
from clearhead.models.build import Model
from clearhead.models.config import ModelConfig
from clearhead.models.config_checks import DROPOUTS
from clearhead.models.families.family import family_named
from clearhead.text.tokenizer import Tokenizer


def save(
    model: Model,
    folder: str | Path,
    tokenizer: Tokenizer | None = None,
    *,
    generation: GenerationDefaults | None = None,
) -> Path:
    """Write config.json, model.safetensors and the tokenizer, atomically: all of it or nothing.

    Everything is written to a temporary folder beside ``folder``, which is then renamed. A model
    folder that is there already is replaced; any other folder with files in it is not.

    Args:
        model: an :class:`Encoder`, :class:`Decoder` or :class:`EncoderDecoder`.
        folder: the folder to write.
        tokenizer: the tokenizer to write beside the model, if any.
        generation: how texts are to be generated, for generation_config.json: what
            ``loaded.generation`` holds of the files that a model came from.

    Returns:
        The folder as an absolute path.

    Raises:
        InputError: the folder holds other files, or the family's config.json cannot express one of
            the model's settings.
        CheckpointError: the files cannot be written.

    >>> import clearhead, tempfile
    >>> config = clearhead.ModelConfig(
    ...     kind="decoder", vocab=97, context=64, model=24, layers=2, heads=3, feed_forward=48
    ... )
    >>> with tempfile.TemporaryDirectory() as place:
    ...     folder = save(clearhead.Decoder(config), f"{place}/tiny")
    ...     sorted(path.name for path in folder.iterdir())
    ['config.json', 'model.safetensors']
    """
    if not isinstance(model, Model):
        raise InputError(
            f"model must be an Encoder, Decoder or EncoderDecoder; got {type(model).__name__}.",
            hint="of what ch.load returns: save(loaded.model, folder, loaded.tokenizer, "
            "generation=loaded.generation).",
        )
    if not isinstance(tokenizer, Tokenizer | None):
        raise InputError(f"tokenizer must be one of clearhead.text; got {shown(tokenizer)}.")
    if not isinstance(generation, GenerationDefaults | None):
        raise InputError(f"generation must be what loaded.generation is; got {shown(generation)}.")
    folder = path("folder", folder).absolute()  # "." has no name of its own
    if folder.exists() and not _replaceable(folder):
        raise InputError(
            f"{folder} holds files that are not a model's; it will not be replaced.",
            hint="choose a folder that does not exist yet.",
        )
    temporary = temporary_path(folder)
    try:
        temporary.mkdir(parents=True)
        _write(model, temporary, tokenizer)
        if generation is not None and (fields := generation.as_fields()):
            write_json(temporary / FILE, fields)
        _swap(temporary, folder)
    except OSError as error:
        raise CheckpointError(
            f"cannot write {folder}: {error}.", hint="is the disk full or write-protected?"
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return folder


def _write(model: Model, folder: Path, tokenizer: Tokenizer | None) -> None:
    family = family_named(model.config.family)
    dtype = str(next(model.parameters()).dtype).removeprefix("torch.")
    fields = family.fields_of(model.config) | {"dtype": dtype}
    written = _with_what_the_weights_say(family.read(fields), model.config)
    if model.config.head == "embedding":  # modules.json holds it
        unit = model.config.embedding_unit
        written = written.changed(head="embedding", embedding_unit=unit)
        write_sentence_modules(folder, model.config)
    if written.resolved() != model.config.resolved():
        raise InputError(
            f"this model has settings that a {family.name} config.json cannot say.",
            hint='model.config.changed(family="clearhead") saves it in our own format.',
        )
    write_json(folder / "config.json", fields)
    write_safetensors(folder / "model.safetensors", weights_of(model, family))
    if tokenizer is not None:
        tokenizer.save(folder)


def _with_what_the_weights_say(written: ModelConfig, config: ModelConfig) -> ModelConfig:
    """What is read back, once matrices that differ have been found in the file beside it.

    Dropout is left out: only training knows it, and not every family can say all of it.
    """
    written = written.changed(**{name: getattr(config, name) for name in DROPOUTS})
    if not written.tied:
        return written
    return written.changed(tied=config.tied, shared_embedding=config.shared_embedding)


def _replaceable(folder: Path) -> bool:
    return folder.is_dir() and ((folder / "config.json").exists() or not any(folder.iterdir()))


def _swap(new: Path, folder: Path) -> None:
    """Put the new folder in place of the old one, which stays until the new one is there."""
    if not folder.exists():
        new.rename(folder)
        return
    old = temporary_path(folder, "old")
    folder.rename(old)
    try:
        new.rename(folder)
    except OSError:
        old.rename(folder)
        raise
    shutil.rmtree(old, ignore_errors=True)
