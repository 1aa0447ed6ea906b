"""A trace as one file: safetensors, with everything that is no tensor as JSON in its header.

docs/watch.md describes the schema. A file is checked from end to end before anything is believed:
it may be cut short, foreign, from the future, or made to harm. Tensors are mapped, so opening a
long trace reads only what somebody looks at.
"""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from clearhead.checkpoints.safetensors.file import SafetensorsFile, write_safetensors
from clearhead.errors import CheckpointError, InputError
from clearhead.files.json_file import parse_json
from clearhead.text.token import Token
from clearhead.trace.chunks import TENSORS
from clearhead.trace.passage import Passage
from clearhead.trace.record import LayerRecord
from clearhead.trace.trace_check import (
    BIAS_PARTS,
    MASK_PARTS,
    TraceFaultError,
    checked_layer,
    checked_passage,
    field,
)

if TYPE_CHECKING:
    from clearhead.trace.seen import Seen

KEY = "clearhead.trace"
VERSION = 1


def save_trace(seen: Seen, path: str | Path) -> Path:
    """Write a trace to ``path``; an older trace there is replaced, any other file is not."""
    path = Path(path)
    if path.exists() and not is_trace(path):
        raise InputError(
            f"{path} is there already and is no trace; it will not be replaced.",
            hint="choose a path that does not exist yet.",
        )
    tensors: dict[str, Tensor] = {}
    about = {
        "version": VERSION,
        "layers": [_layer(i, record, tensors) for i, record in enumerate(seen.records)],
        "passages": [_passage(passage) for passage in seen.labels.passages],
        "sources": [_passage(passage) for passage in seen.labels.sources],
        "missed": seen.missed,
    }
    write_safetensors(path, tensors, {KEY: json.dumps(about, ensure_ascii=False)})
    return path


def open_trace(path: str | Path) -> Seen:
    """Open a trace file; neither the model nor ``transformers`` is needed.

    Args:
        path: a file that ``seen.save`` wrote.

    Returns:
        The same layers, tokens and numbers. Tensors are memory-mapped: only what a view needs is
        read from the disk.

    Raises:
        CheckpointError: the file is no trace, is damaged, or a newer clearhead wrote it.

    >>> import tempfile, torch, clearhead as ch
    >>> layer = torch.nn.MultiheadAttention(6, 2, batch_first=True)
    >>> with ch.watch(layer) as seen:
    ...     _ = layer(*[torch.ones(1, 5, 6)] * 3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = open_trace(seen.save(f"{folder}/run.trace"))
    ...     again["L0H1"].row(4)
    tensor([0.2000, 0.2000, 0.2000, 0.2000, 0.2000])
    """
    from clearhead.trace.seen import Seen

    path = Path(path)
    file = SafetensorsFile(path)
    about = _about(path, file)
    try:
        layers = field(about, "layers", list)
        records = [_record(file, i, entry) for i, entry in enumerate(layers)]
        names = [record.facts.name for record in records]
        if len(set(names)) != len(names):
            raise TraceFaultError("two layers have the same name")
        passages, sources = (
            [checked_passage(entry) for entry in field(about, name, list)]
            for name in ("passages", "sources")
        )
        seen = Seen(records, passages, source=sources, missed=field(about, "missed", str))
        for record in records:
            seen.labels.of(record)
    except (TraceFaultError, InputError) as fault:
        raise CheckpointError(f"{path} is not a sound trace: {fault}.") from None
    return seen


def is_trace(path: Path) -> bool:
    """True if a file declares itself a trace."""
    try:
        return KEY in SafetensorsFile(path).metadata
    except CheckpointError:
        return False


def _about(path: Path, file: SafetensorsFile) -> dict[str, Any]:
    text = file.metadata.get(KEY)
    if text is None:
        raise CheckpointError(
            f"{path} is a safetensors file, but not a trace: {KEY} is missing in its header.",
            hint="ch.load opens models; seen.save writes traces.",
        )
    try:
        about = parse_json(text)
    except ValueError as error:
        raise CheckpointError(f"{path} is not a sound trace: its JSON is bad: {error}.") from None
    version = about.get("version") if isinstance(about, dict) else None
    if type(version) is not int or version < 1:
        raise CheckpointError(f"{path} is not a sound trace: it has no version.")
    if version > VERSION:
        raise CheckpointError(
            f"{path} is a trace of version {version}; this clearhead reads up to {VERSION}.",
            hint="a newer clearhead wrote it: update clearhead.",
        )
    assert isinstance(about, dict)
    return about


def _layer(number: int, record: LayerRecord, tensors: dict[str, Tensor]) -> dict[str, Any]:
    """What JSON can say of a layer; its tensors go into ``tensors``."""

    def put(name: str, tensor: Tensor | None) -> None:
        if tensor is not None:
            tensors[f"{number}.{name}"] = tensor.detach().cpu()

    for name in (*TENSORS, "sinks"):
        put(name, getattr(record, name))
    pieces = []
    for index, piece in enumerate(record.pieces):
        origin = None if piece.bias is None else piece.bias.origin
        masked = piece.mask is not None
        pieces.append({"rows": piece.rows, "keys": piece.keys, "masked": masked, "origin": origin})
        for part in MASK_PARTS if piece.mask is not None else ():
            put(f"{index}.mask.{part}", getattr(piece.mask, part))
        for part in BIAS_PARTS if piece.bias is not None else ():
            put(f"{index}.bias.{part}", getattr(piece.bias, part))
    dtype = str(record.facts.dtype).removeprefix("torch.")
    facts = asdict(record.facts) | {"dtype": dtype}
    return facts | {"head_numbers": list(record.head_numbers), "pieces": pieces}


def _record(file: SafetensorsFile, number: int, entry: object) -> LayerRecord:
    names = set(file.names())

    def get(name: str) -> Tensor | None:
        full = f"{number}.{name}"
        return file.tensor(full) if full in names else None

    return checked_layer(number, entry, get)


def _passage(passage: Passage) -> dict[str, Any]:
    tokens = [[getattr(token, f.name) for f in fields(Token)] for token in passage.tokens]
    return {"text": passage.text, "tokens": tokens}
