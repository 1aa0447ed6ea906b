"""The header of a safetensors file, checked before the file is mapped.

Layout (little-endian): 8 bytes header length n, n bytes of JSON, then the tensors' bytes.
The JSON maps each tensor's name to dtype, shape and two offsets into the bytes after the header;
``__metadata__`` maps strings to strings. The tensors fill the rest of the file without holes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clearhead.errors import CheckpointError
from clearhead.files.json_file import parse_json
from clearhead.files.regular_file import FETCH_AGAIN, reason, regular_file_size

LONGEST_HEADER = 100_000_000
MOST_AXES = 16
LARGEST_COUNT = 2**63 - 1

DTYPE_BYTES = {
    "BOOL": 1,
    "U8": 1,
    "I8": 1,
    "F8_E4M3": 1,
    "F8_E5M2": 1,
    "U16": 2,
    "I16": 2,
    "F16": 2,
    "BF16": 2,
    "U32": 4,
    "I32": 4,
    "F32": 4,
    "U64": 8,
    "I64": 8,
    "F64": 8,
    "C64": 8,
}


@dataclass(frozen=True)
class TensorEntry:
    """One tensor as the header describes it: its bytes are ``[start, end)`` of the data."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


@dataclass(frozen=True)
class SafetensorsHeader:
    """A header that has passed every check."""

    tensors: Mapping[str, TensorEntry]
    metadata: Mapping[str, str]


def read_safetensors_header(path: Path) -> SafetensorsHeader:
    """Read and check the header of the safetensors file at ``path``."""
    size = regular_file_size(path, "safetensors")
    try:
        header, data_bytes = _read_json(path, size)
        metadata = _checked_metadata(header.pop("__metadata__", None))
        tensors = {name: _checked_entry(name, entry) for name, entry in header.items()}
        _check_offsets(tensors, data_bytes)
    except _HeaderError as error:
        raise CheckpointError(f"{path} is not a sound safetensors file: {error}") from None
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {reason(error)}.") from error
    return SafetensorsHeader(tensors, metadata)


class _HeaderError(Exception):
    """A fault in the header; the reader adds the path of the file."""


def _read_json(path: Path, size: int) -> tuple[dict[str, Any], int]:
    with path.open("rb") as file:
        prefix = file.read(8)
        length = int.from_bytes(prefix, "little")
        if len(prefix) < 8:
            raise _HeaderError(f"its {size} bytes cannot hold the 8-byte header length.")
        if length > size - 8:
            raise _HeaderError(
                f"its header claims {length} bytes, but only {size - 8} follow. {FETCH_AGAIN}"
            )
        if length > LONGEST_HEADER:
            raise _HeaderError(f"its header claims {length} bytes; at most {LONGEST_HEADER} go.")
        text = file.read(length)
    return _parsed(text), size - 8 - length


def _parsed(text: bytes) -> dict[str, Any]:
    try:
        header = parse_json(text)
    except ValueError as error:
        raise _HeaderError(f"its header is not valid JSON: {error}.") from None
    if not isinstance(header, dict):
        raise _HeaderError("its header is not a JSON object.")
    return header


def _checked_metadata(metadata: object) -> dict[str, str]:
    if metadata is None:
        return {}
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise _HeaderError("its __metadata__ is not a map from strings to strings.")
    return metadata


def _checked_entry(name: str, entry: object) -> TensorEntry:
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise _HeaderError(f"tensor {name!r} wants exactly dtype, shape and data_offsets.")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPE_BYTES:
        raise _HeaderError(
            f"tensor {name!r} has the unknown dtype {str(dtype)[:40]!r}; "
            f"known are {', '.join(DTYPE_BYTES)}."
        )
    if not _counts(shape) or len(shape) > MOST_AXES:
        raise _HeaderError(f"tensor {name!r} has the impossible shape {str(shape)[:80]}.")
    if not _counts(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise _HeaderError(f"tensor {name!r} has the impossible offsets {str(offsets)[:80]}.")
    checked = TensorEntry(dtype, tuple(shape), offsets[0], offsets[1])
    _check_size(name, checked)
    return checked


def _counts(values: object) -> bool:
    # bool is an int in Python; type() keeps JSON's true out of shapes.
    return isinstance(values, list) and all(type(v) is int and v >= 0 for v in values)


def _check_size(name: str, entry: TensorEntry) -> None:
    # With an axis of 0 the others could still be too large for any library that multiplies them.
    if math.prod(max(axis, 1) for axis in entry.shape) > LARGEST_COUNT:
        raise _HeaderError(f"tensor {name!r} has the impossible shape {list(entry.shape)}.")
    wanted = math.prod(entry.shape) * DTYPE_BYTES[entry.dtype]
    if wanted != entry.end - entry.start:
        raise _HeaderError(
            f"tensor {name!r} of shape {list(entry.shape)} and dtype {entry.dtype} needs {wanted} "
            f"bytes, but its offsets span {entry.end - entry.start}."
        )


def _check_offsets(tensors: Mapping[str, TensorEntry], data_bytes: int) -> None:
    position = 0
    for name, entry in sorted(tensors.items(), key=lambda item: (item[1].start, item[1].end)):
        if entry.end > data_bytes:
            raise _HeaderError(
                f"tensor {name!r} ends at byte {entry.end} of the data, "
                f"but the file holds only {data_bytes}. {FETCH_AGAIN}"
            )
        if entry.start != position:
            what = "overlaps another tensor" if entry.start < position else "leaves a hole"
            raise _HeaderError(f"tensor {name!r} {what} at byte {min(entry.start, position)}.")
        position = entry.end
    if position != data_bytes:
        raise _HeaderError(f"its tensors end at byte {position}, but the data has {data_bytes}.")
