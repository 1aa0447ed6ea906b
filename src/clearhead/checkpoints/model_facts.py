"""Facts about a model from the headers of its files, without loading any weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from clearhead.checkpoints.gguf.header import read_gguf_header
from clearhead.checkpoints.safetensors.header import read_safetensors_header
from clearhead.files.json_file import read_json

LONGEST_VALUE = 60


def facts_of(path: Path) -> dict[str, str]:
    """Return the short facts in a ``.gguf``, a ``.safetensors`` or a folder, as text."""
    if path.suffix == ".gguf":
        header = read_gguf_header(path)
        kinds = _counted(tensor.kind.name for tensor in header.tensors.values())
        return {"tensors": kinds, **_short(header.metadata)}
    if path.is_dir():
        return {**_short(read_json(path / "config.json")), **facts_of(path / "model.safetensors")}
    return _safetensors_facts(path)


def _safetensors_facts(path: Path) -> dict[str, str]:
    header = read_safetensors_header(path)
    kinds = _counted(tensor.dtype for tensor in header.tensors.values())
    return {"tensors": kinds, **_short(header.metadata)}


def _counted(kinds: Iterable[str]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in Counter(kinds).most_common())


def _short(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return the pairs that fit on one line; vocabularies and templates give their length."""
    return {key: _one_line(value) for key, value in metadata.items()}


def _one_line(value: Any) -> str:
    if isinstance(value, str):
        text = " ".join(value.split())
        return text if len(text) <= LONGEST_VALUE else f"{len(value)} characters"
    if hasattr(value, "__len__") and len(value) > 4:
        return f"{len(value)} items"
    return str(value)
