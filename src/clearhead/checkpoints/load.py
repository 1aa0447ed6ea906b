"""``load``: a model with its tokenizer, from a name, files, the hub or transformers."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import torch
from torch import nn

from clearhead.arguments import shown
from clearhead.checkpoints.adapters.adapter import add_adapter
from clearhead.checkpoints.adapters.adapter_folder import read_adapter, read_base
from clearhead.checkpoints.adapters.base import CONFIG, check_base, is_adapter, kept_base
from clearhead.checkpoints.description import description_errors
from clearhead.checkpoints.from_transformers import (
    FastTokenizer,
    is_transformers_model,
    model_from_transformers,
    name_of,
    tokenizer_from_transformers,
)
from clearhead.checkpoints.generation_defaults import GenerationDefaults
from clearhead.checkpoints.gguf.file import GGUFFile
from clearhead.checkpoints.safetensors.shards import open_safetensors
from clearhead.checkpoints.sentence_modules import MODULES, sentence_config
from clearhead.checkpoints.store.files_checked import files_checked
from clearhead.checkpoints.store.hub import fetch_from_hub, is_hub_id
from clearhead.checkpoints.store.model_store import ModelStore
from clearhead.checkpoints.store.wheel import Progress
from clearhead.checkpoints.weights import model_from_weights, unread_tensors
from clearhead.errors import CheckpointError, InputError, StoreError, UnreadWarning
from clearhead.files.json_file import read_json
from clearhead.kernels.freed_memory import give_back_freed_memory
from clearhead.models.build import Model
from clearhead.models.config import ModelConfig
from clearhead.models.families.family import Family, family_of
from clearhead.models.families.gguf import ROTARY_FACTORS, gguf_family
from clearhead.models.families.gguf_keys import unread_metadata
from clearhead.tensors import device_of, float_type
from clearhead.text.folder import load_tokenizer
from clearhead.text.gguf.tokenizer import tokenizer_from_gguf
from clearhead.text.tokenizer import Tokenizer

# A model, its tokenizer if there is one, and what of its files is not read.
Read: TypeAlias = tuple[Model, Tokenizer | None, GenerationDefaults, tuple[str, ...]]


@dataclass(frozen=True)
class Loaded:
    """A model ready to run, with its config and its tokenizer.

    Attributes:
        name: what it was loaded by: a name of the catalogue, a path or a hub id.
        path: the file or folder that it came from; ``Path()`` for a model from memory.
        model: an :class:`Encoder`, :class:`Decoder` or :class:`EncoderDecoder`, in eval mode and
            without gradients.
        config: the model's description.
        tokenizer: None where the folder holds none.
        generation: how its files want texts to be generated; ``generate`` and ``beam_search`` use
            it wherever the caller gives nothing.
        unread: the fields, metadata and tensors of its files that nobody here knows. ``load`` warns
            of them (:class:`clearhead.errors.UnreadWarning`).

    >>> import clearhead
    >>> clearhead.load("dates")
    Loaded('dates': bart encoder-decoder, 1 layer × 2 heads, 121,409 parameters)
    """

    name: str
    path: Path
    model: Model
    config: ModelConfig
    tokenizer: Tokenizer | None
    generation: GenerationDefaults = field(default_factory=GenerationDefaults)
    unread: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, kinds in (
            ("name", str),
            ("path", Path),
            ("model", Model),
            ("config", ModelConfig),
            ("tokenizer", Tokenizer | None),
            ("generation", GenerationDefaults),
            ("unread", tuple),
        ):
            given = getattr(self, name)
            if not isinstance(given, kinds):
                wanted = getattr(kinds, "__name__", str(kinds))
                raise InputError(f"{name} must be a {wanted}; got {shown(given)}.")

    def __repr__(self) -> str:
        count = sum(parameter.numel() for parameter in self.model.parameters())
        return (
            f"Loaded({self.name!r}: {self.config.family} {self.config.kind}, "
            f"{_counted(self.config.layers, 'layer')} × {_counted(self.config.heads, 'head')}, "
            f"{count:,} parameters)"
        )


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def load(
    model: str | Path | nn.Module,
    *,
    tokenizer: Tokenizer | FastTokenizer | None = None,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
    progress: Progress | None = None,
) -> Loaded:
    """Load a model by name, from files, from the hub, or from a model of ``transformers``.

    A ``transformers`` model of a known family is taken over without copying: the weights are the
    same memory (transposed matrices and parts of a fused matrix are views), so a change in place
    is visible on both sides. Only another ``dtype`` or ``device`` makes copies.

    Args:
        model: a name of the catalogue ("dates", "smollm2", "minilm"), a folder, a .gguf or
            .safetensors file, a hub id ("org/name"), or a ``transformers`` model. A folder with a
            LoRA adapter (PEFT's files) gives the model that it is for, with the adapter added.
        tokenizer: a tokenizer of clearhead or a fast one of ``transformers``, instead of the one
            that the files hold; a ``transformers`` model has none without it.
        dtype: the floating-point type to compute in. Without it files compute in float32; the
            matrices of a GGUF file stay as they are stored and are unpacked where they are used
            (with ``dtype=torch.float32`` they can be changed and trained); a ``transformers``
            model keeps its own.
        device: the device to compute on: the CPU without it, or where a ``transformers`` model is.
        progress: called as ``progress(done_bytes, total_bytes, what)`` while files are fetched.

    Returns:
        The model in eval mode without gradients, its config and its tokenizer.

    Raises:
        StoreError: there is no model or path of this name, it cannot be fetched, or the files of a
            model of the catalogue are not the ones that were fetched (SHA-256).
        CheckpointError: a file is broken, or no family reads a model of this kind, or a field of
            its description asks for something that is not known; the error names it.
        InputError: an argument is wrong.

    Warns:
        UnreadWarning: the files say something that nobody here knows; ``unread`` has the names.

    >>> import clearhead
    >>> loaded = clearhead.load("dates")
    >>> loaded.config.kind, loaded.tokenizer.size
    ('encoder-decoder', 65)
    """
    if dtype is not None:
        float_type("dtype (a model computes in floating point)", dtype)
    if device is not None:
        device = device_of("device", device)
    if progress is not None and not callable(progress):
        raise InputError(f"progress must be a function; got {shown(progress)}.")
    given = None if tokenizer is None else tokenizer_from_transformers(tokenizer)
    if isinstance(model, str | Path):
        loaded = _from_files(model, given, dtype, device, progress)
    else:
        loaded = _from_memory(model, given, dtype, device)
    if loaded.unread:
        warnings.warn(UnreadWarning(loaded.unread, where=loaded.name), stacklevel=2)
    return loaded


def _from_files(
    name: str | Path,
    tokenizer: Tokenizer | None,
    dtype: torch.dtype | None,
    device: torch.device | str | None,
    progress: Progress | None,
) -> Loaded:
    path = resolve(name, progress)
    if is_adapter(path):
        model, found, generation, unread = _from_adapter(path, dtype, progress)
    else:
        model, found, generation, unread = _from_model(path, dtype)
    model = model if device is None else model.to(device)
    tokenizer = found if tokenizer is None else tokenizer
    unread = (*unread, *generation.unread)
    return Loaded(str(name), path, model, model.config, tokenizer, generation, unread)


def _from_model(path: Path, dtype: torch.dtype | None) -> Read:
    read = _from_gguf if path.suffix == ".gguf" else _from_folder
    with files_checked(path):
        found = read(path, dtype)
    give_back_freed_memory()  # of a vocabulary, half a million small pieces
    return found


def _from_adapter(folder: Path, dtype: torch.dtype | None, progress: Progress | None) -> Read:
    """A folder with a LoRA adapter: its base, with the adapter added to the weights."""
    base = read_base(folder)
    kept = kept_base(folder)
    if kept is None and not base.name:
        raise CheckpointError(
            f"{folder / CONFIG} does not name the model that the adapter is for.",
            hint="set base_model_name_or_path in it.",
        )
    path = resolve(base.name, progress) if kept is None else kept
    if is_adapter(path):
        raise CheckpointError(
            f"the adapter in {folder} is for {path}, which is an adapter itself.",
            hint="merge that one first: clearhead models merge.",
        )
    check_base(path, base, folder)
    model, tokenizer, generation, unread = _from_model(path, dtype)
    add_adapter(model, read_adapter(folder, model.config))
    own = load_tokenizer(folder) if has_tokenizer(folder) else tokenizer
    return model, own, generation, unread


def _from_memory(
    given: nn.Module,
    tokenizer: Tokenizer | None,
    dtype: torch.dtype | None,
    device: torch.device | str | None,
) -> Loaded:
    if not is_transformers_model(given):
        raise InputError(
            "load takes a name, a path or a model of transformers; got a "
            f"{type(given).__module__}.{type(given).__qualname__}."
        )
    model, unread = model_from_transformers(given, dtype)
    model = model if device is None else model.to(device)
    generation = GenerationDefaults.of_transformers(given)
    unread = (*unread, *generation.unread)
    return Loaded(name_of(given), Path(), model, model.config, tokenizer, generation, unread)


def resolve(name: str | Path, progress: Progress | None = None) -> Path:
    """Return the folder or file that a name stands for, fetched if need be."""
    if _exists(Path(name)):
        return Path(name)
    if isinstance(name, Path):
        raise StoreError(f"{name} does not exist; a folder or model file was wanted.")
    store = ModelStore()
    if name in store.catalogue:
        return store.pull(name, progress)
    if is_hub_id(name):
        return fetch_from_hub(name, progress)
    raise StoreError(
        f"there is no model or path {name!r}.",
        hint=f"known by name: {', '.join(store.catalogue)}; or give a folder, a .gguf or "
        '.safetensors file, or a hub id such as "org/name".',
    )


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # too long for a path, say
        return False


def _from_folder(path: Path, dtype: torch.dtype | None) -> Read:
    """A folder, or a .safetensors file inside one."""
    folder = path if path.is_dir() else path.parent
    gguf = sorted(folder.glob("*.gguf")) if path.is_dir() else []
    if path.is_dir() and not (folder / "config.json").exists() and len(gguf) == 1:
        return _from_gguf(gguf[0], dtype)
    family, config, unread = read_config(folder)
    file = open_safetensors(path)
    dtype = torch.float32 if dtype is None else dtype
    model = model_from_weights(config, family, file, where=str(path), dtype=dtype)
    tokenizer = load_tokenizer(folder) if has_tokenizer(folder) else None
    unread = (*unread, *unread_tensors(family, file))
    return model, tokenizer, GenerationDefaults.of_folder(folder), unread


def has_tokenizer(folder: Path) -> bool:
    """True if a folder holds a tokenizer."""
    return any((folder / name).exists() for name in ("tokenizer.json", "vocabulary.json"))


def read_config(folder: Path) -> tuple[Family, ModelConfig, tuple[str, ...]]:
    """Return the family and the config that a folder's config.json describes, and what of it is
    not read."""
    path = folder / "config.json"
    if not path.exists():
        raise CheckpointError(
            f"{folder} holds no config.json, which describes the model.",
            hint="a model folder has config.json, model.safetensors and tokenizer.json.",
        )
    fields = read_json(path)
    family = family_of(fields)
    with description_errors(path):
        config, unread = family.read(fields), family.unread(fields)
    if (folder / MODULES).exists() and config.kind == "encoder":
        config = sentence_config(folder, config)
    return family, config, unread


def _from_gguf(path: Path, dtype: torch.dtype | None) -> Read:
    file = GGUFFile(path)
    factors = None
    if ROTARY_FACTORS in file.names():
        factors = tuple(file.tensor(ROTARY_FACTORS).flatten().tolist())
    if "token_embd.weight" not in file.names():
        raise CheckpointError(f"{path} holds no token_embd.weight: it is not a language model.")
    with description_errors(path):
        vocab = file.shape("token_embd.weight")[0]
        family, config = gguf_family(file.metadata, file.names(), vocab, factors)
    model = model_from_weights(
        config, family, file, where=str(path), dtype=torch.float32 if dtype is None else dtype,
        quantised=dtype is None,
    )  # fmt: skip
    generation = GenerationDefaults.of_gguf(file.metadata, path)
    return model, tokenizer_from_gguf(file.metadata), generation, unread_metadata(file.metadata)
