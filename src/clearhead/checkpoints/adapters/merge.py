"""``merge``: a model folder with the weights of a base and its adapter in one."""

from __future__ import annotations

from pathlib import Path

from clearhead.checkpoints.adapters.base import CONFIG, is_adapter
from clearhead.checkpoints.load import load, resolve
from clearhead.checkpoints.save import save
from clearhead.errors import InputError


def merge(adapter: str | Path, folder: str | Path) -> Path:
    """Write the model that an adapter makes of its base: W + scale·B·A, as an ordinary model.

    Args:
        adapter: a folder with adapter_config.json and adapter_model.safetensors.
        folder: the folder to write; it must be new, empty or a model's.

    Returns:
        The folder as an absolute path. ``ch.load``, transformers and others open it.

    Raises:
        InputError: ``adapter`` holds no adapter, or the folder cannot be replaced.
        CheckpointError: the files are broken, do not fit, or cannot be written.

    >>> merge("dates", "merged")
    Traceback (most recent call last):
    ...
    clearhead.errors.InputError: dates holds no adapter: there is no adapter_config.json in it.
    Hint: clearhead train --from MODEL TEXT --lora 8 makes one.
    """
    path = resolve(adapter)
    if not is_adapter(path):
        raise InputError(
            f"{adapter} holds no adapter: there is no {CONFIG} in it.",
            hint="clearhead train --from MODEL TEXT --lora 8 makes one.",
        )
    loaded = load(adapter)
    return save(loaded.model, folder, loaded.tokenizer, generation=loaded.generation)
