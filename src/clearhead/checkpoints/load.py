"""``load``: a model with its tokenizer, from a name, files, the hub or transformers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from clearhead.arguments import shown
from clearhead.checkpoints.description import description_errors
from clearhead.checkpoints.from_transformers import (
    FastTokenizer,
    is_transformers_model,
    model_from_transformers,
    name_of,
    tokenizer_from_transformers,
)
from clearhead.checkpoints.gguf.file import GGUFFile
from clearhead.checkpoints.safetensors.shards import open_safetensors
from clearhead.checkpoints.sentence_modules import MODULES, sentence_config
from clearhead.checkpoints.store.hub import fetch_from_hub, is_hub_id
from clearhead.checkpoints.store.model_store import ModelStore
from clearhead.checkpoints.store.wheel import Progress
from clearhead.checkpoints.weights import model_from_weights
from clearhead.errors import CheckpointError, InputError, StoreError
from clearhead.files.json_file import read_json
from clearhead.models.build import Model
from clearhead.models.config import ModelConfig
from clearhead.models.families.family import Family, family_of
from clearhead.models.families.gguf import ROTARY_FACTORS, gguf_family
from clearhead.tensors import device_of, float_type
from clearhead.text.folder import load_tokenizer
from clearhead.text.gguf.tokenizer import tokenizer_from_gguf
from clearhead.text.tokenizer import Tokenizer


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

    >>> import clearhead
    >>> clearhead.load("dates")
    Loaded('dates': bart encoder-decoder, 1 layer × 2 heads, 121,409 parameters)
    """

    name: str
    path: Path
    model: Model
    config: ModelConfig
    tokenizer: Tokenizer | None

    def __post_init__(self) -> None:
        for name, kinds in (
            ("name", str),
            ("path", Path),
            ("model", Model),
            ("config", ModelConfig),
            ("tokenizer", Tokenizer | None),
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
            .safetensors file, a hub id ("org/name"), or a ``transformers`` model.
        tokenizer: a tokenizer of clearhead or a fast one of ``transformers``, instead of the one
            that the files hold; a ``transformers`` model has none without it.
        dtype: the floating-point type to compute in. Files are read as float32 without it; a
            ``transformers`` model keeps its own.
        device: the device to compute on: the CPU without it, or where a ``transformers`` model is.
        progress: called as ``progress(done_bytes, total_bytes, what)`` while files are fetched.

    Returns:
        The model in eval mode without gradients, its config and its tokenizer.

    Raises:
        StoreError: there is no model or path of this name, or it cannot be fetched.
        CheckpointError: a file is broken, or no family reads a model of this kind.
        InputError: an argument is wrong.

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
    if not isinstance(model, str | Path):
        return _from_memory(model, given, dtype, device)
    path = resolve(model, progress)
    read = _from_gguf if path.suffix == ".gguf" else _from_folder
    loaded, found = read(path, torch.float32 if dtype is None else dtype)
    loaded = loaded.to("cpu" if device is None else device)
    return Loaded(str(model), path, loaded, loaded.config, found if given is None else given)


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
    model = model_from_transformers(given, dtype)
    model = model if device is None else model.to(device)
    return Loaded(name_of(given), Path(), model, model.config, tokenizer)


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


def _from_folder(path: Path, dtype: torch.dtype) -> tuple[Model, Tokenizer | None]:
    """A folder, or a .safetensors file inside one."""
    folder = path if path.is_dir() else path.parent
    gguf = sorted(folder.glob("*.gguf")) if path.is_dir() else []
    if path.is_dir() and not (folder / "config.json").exists() and len(gguf) == 1:
        return _from_gguf(gguf[0], dtype)
    family, config = read_config(folder)
    model = model_from_weights(config, family, open_safetensors(path), where=str(path), dtype=dtype)
    has_tokenizer = any((folder / name).exists() for name in ("tokenizer.json", "vocabulary.json"))
    return model, load_tokenizer(folder) if has_tokenizer else None


def read_config(folder: Path) -> tuple[Family, ModelConfig]:
    """Return the family and the config that a folder's config.json describes."""
    path = folder / "config.json"
    if not path.exists():
        raise CheckpointError(
            f"{folder} holds no config.json, which describes the model.",
            hint="a model folder has config.json, model.safetensors and tokenizer.json.",
        )
    fields = read_json(path)
    family = family_of(fields)
    with description_errors(path):
        config = family.read(fields)
    if (folder / MODULES).exists() and config.kind == "encoder":
        config = sentence_config(folder, config)
    return family, config


def _from_gguf(path: Path, dtype: torch.dtype) -> tuple[Model, Tokenizer]:
    file = GGUFFile(path)
    factors = None
    if ROTARY_FACTORS in file.names():
        factors = tuple(file.tensor(ROTARY_FACTORS).flatten().tolist())
    if "token_embd.weight" not in file.names():
        raise CheckpointError(f"{path} holds no token_embd.weight: it is not a language model.")
    with description_errors(path):
        vocab = file.shape("token_embd.weight")[0]
        family, config = gguf_family(file.metadata, file.names(), vocab, factors)
    model = model_from_weights(config, family, file, where=str(path), dtype=dtype)
    plain = {
        key: value.tolist() if hasattr(value, "tolist") else value
        for key, value in file.metadata.items()
    }
    return model, tokenizer_from_gguf(plain)
