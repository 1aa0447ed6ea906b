"""``load``: a model with its tokenizer, from a name, a folder, a file or the hub."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from clearhead.checkpoints.description import nonsense_refused, read_description
from clearhead.checkpoints.gguf_file import GGUFFile
from clearhead.checkpoints.hub import fetch_from_hub, is_hub_id
from clearhead.checkpoints.safetensors_shards import open_safetensors
from clearhead.checkpoints.sentence_modules import MODULES, sentence_config
from clearhead.checkpoints.store import ModelStore
from clearhead.checkpoints.weights import model_from_weights
from clearhead.checkpoints.wheel import Progress
from clearhead.errors import CheckpointError, InputError, StoreError
from clearhead.models.build import Model
from clearhead.models.config import ModelConfig
from clearhead.models.families.family import Family, family_of
from clearhead.models.families.gguf import ROTARY_FACTORS, gguf_family
from clearhead.text.folder import load_tokenizer
from clearhead.text.gguf_tokenizer import tokenizer_from_gguf
from clearhead.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Loaded:
    """A model ready to run, and what belongs to it."""

    name: str
    path: Path
    model: Model
    config: ModelConfig
    tokenizer: Tokenizer | None  # None where the folder holds none

    def __repr__(self) -> str:
        count = sum(parameter.numel() for parameter in self.model.parameters())
        return (
            f"Loaded({self.name!r}: {self.config.family} {self.config.kind}, "
            f"{self.config.layers} layers × {self.config.heads} heads, {count:,} parameters)"
        )


def load(
    name: str | Path,
    *,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
    progress: Progress | None = None,
) -> Loaded:
    """Load a model by a name of the catalogue ("smollm2", "minilm"), a folder, a .gguf or
    .safetensors file, or a hub id ("org/name").

    ``progress(done, total, what)`` is told of bytes fetched, if any are.
    """
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise InputError(f"a model computes in floating point; got dtype {dtype}.")
    path = resolve(name, progress)
    tokenizer: Tokenizer | None
    if path.suffix == ".gguf":
        model, tokenizer = _from_gguf(path, dtype)
    else:
        model, tokenizer = _from_folder(path, dtype)
    return Loaded(str(name), path, model.to(device), model.config, tokenizer)


def resolve(name: str | Path, progress: Progress | None = None) -> Path:
    """The folder or file that a name stands for, fetched if need be."""
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
    """The family and config of a folder's config.json."""
    fields = read_description(folder / "config.json")
    family = family_of(fields)
    with nonsense_refused(folder / "config.json"):
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
    with nonsense_refused(path):
        vocab = file.shape("token_embd.weight")[0]
        family, config = gguf_family(file.metadata, file.names(), vocab, factors)
    model = model_from_weights(config, family, file, where=str(path), dtype=dtype)
    plain = {
        key: value.tolist() if hasattr(value, "tolist") else value
        for key, value in file.metadata.items()
    }
    return model, tokenizer_from_gguf(plain)
