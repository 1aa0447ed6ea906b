"""The header of a GGUF file: metadata and the list of tensors, checked against the file.

Layout (little-endian): ``GGUF``, version, number of tensors, number of metadata pairs; the pairs;
each tensor's name, axes (fastest first), kind and offset; padding; the tensors' data.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clearhead.checkpoints.gguf.cursor import LONGEST_NAME, GGUFCursor, GGUFSyntaxError
from clearhead.checkpoints.gguf.kinds import KINDS, TensorKind
from clearhead.errors import CheckpointError
from clearhead.files.regular_file import FETCH_AGAIN, reason, regular_file_size

MOST_AXES = 4
MOST_PAIRS, MOST_TENSORS = 2**16, 2**20  # ten times what the largest known files have
VERSIONS = (2, 3)
SMALLEST_PAIR = 8 + 4 + 1
SMALLEST_TENSOR = 8 + 4 + 4 + 8


@dataclass(frozen=True)
class GGUFTensor:
    """One tensor: ``shape`` in torch's order (fastest axis last), bytes ``[start, end)``."""

    kind: TensorKind
    shape: tuple[int, ...]
    start: int
    end: int


@dataclass(frozen=True)
class GGUFHeader:
    """A header that has passed every check, and the mapping it was read from."""

    data: mmap.mmap
    metadata: dict[str, Any]
    tensors: Mapping[str, GGUFTensor]


def read_gguf_header(path: Path) -> GGUFHeader:
    """Map the GGUF file at ``path``; read and check its header."""
    regular_file_size(path, "GGUF")
    try:
        with path.open("rb") as file:
            # A private mapping: tensors may be written to, the file never changes.
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        return _parsed(data)
    except GGUFSyntaxError as error:
        raise CheckpointError(f"{path} is not a sound GGUF file: {error}") from None
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} cannot be read: {reason(error)}.") from error


def _parsed(data: mmap.mmap) -> GGUFHeader:
    cursor = GGUFCursor(data)
    _check_magic_and_version(cursor)
    tensor_count = cursor.uint64("the number of tensors")
    pair_count = cursor.uint64("the number of metadata pairs")
    if tensor_count * SMALLEST_TENSOR + pair_count * SMALLEST_PAIR > cursor.end - cursor.position:
        raise GGUFSyntaxError(
            f"it claims {tensor_count} tensors and {pair_count} metadata pairs, "
            f"which its {cursor.end} bytes cannot hold. {FETCH_AGAIN}"
        )
    if pair_count > MOST_PAIRS or tensor_count > MOST_TENSORS:
        raise GGUFSyntaxError(
            f"it claims {tensor_count:,} tensors and {pair_count:,} metadata pairs; at most "
            f"{MOST_TENSORS:,} and {MOST_PAIRS:,} go."
        )
    metadata = _read_metadata(cursor, pair_count)
    _check_whole(metadata)
    tensors = _read_tensors(cursor, tensor_count)
    return GGUFHeader(data, metadata, _placed(tensors, cursor, _alignment(metadata)))


def _check_magic_and_version(cursor: GGUFCursor) -> None:
    magic = cursor.take(4, "the magic bytes")
    if magic != b"GGUF":
        raise GGUFSyntaxError(f"it begins with {magic!r} instead of b'GGUF'.")
    version = cursor.uint32("the version")
    if version & 0xFFFF == 0 and version:
        raise GGUFSyntaxError("it is big-endian, and clearhead reads little-endian files only.")
    if version not in VERSIONS:
        raise GGUFSyntaxError(f"it has version {version}; clearhead reads versions 2 and 3.")


def _read_metadata(cursor: GGUFCursor, count: int) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    for index in range(count):
        key = cursor.string(f"the key of metadata pair {index}", LONGEST_NAME)
        if key in metadata:
            raise GGUFSyntaxError(f"metadata {key!r} is given twice.")
        metadata[key] = cursor.value(f"metadata {key!r}")
    return metadata


def _check_whole(metadata: Mapping[str, Any]) -> None:
    pieces = metadata.get("split.count", 1)
    if isinstance(pieces, int) and pieces > 1:
        raise GGUFSyntaxError(
            f"it is one of {pieces} pieces of a split model; join them first "
            "(llama-gguf-split --merge)."
        )


def _alignment(metadata: Mapping[str, Any]) -> int:
    alignment = metadata.get("general.alignment", 32)
    if type(alignment) is not int or alignment < 8 or alignment & (alignment - 1):
        raise GGUFSyntaxError(
            f"general.alignment is {str(alignment)[:40]}; wanted a power of two from 8 on."
        )
    return alignment


def _read_tensors(cursor: GGUFCursor, count: int) -> dict[str, GGUFTensor]:
    """Read the list of tensors; offsets still count from the start of the data."""
    tensors: dict[str, GGUFTensor] = {}
    for index in range(count):
        name = cursor.string(f"the name of tensor {index}", LONGEST_NAME)
        if name in tensors:
            raise GGUFSyntaxError(f"tensor {name!r} is listed twice.")
        tensors[name] = _read_tensor(cursor, f"tensor {name!r}")
    return tensors


def _read_tensor(cursor: GGUFCursor, what: str) -> GGUFTensor:
    axes = cursor.uint32(what)
    if axes > MOST_AXES:
        raise GGUFSyntaxError(f"{what} claims {axes} axes; at most {MOST_AXES} go.")
    shape = tuple(cursor.uint64(what) for _ in range(axes))[::-1]
    number = cursor.uint32(what)
    kind = KINDS.get(number)
    if kind is None:
        known = ", ".join(kind.name for kind in KINDS.values())
        raise GGUFSyntaxError(f"{what} is of the unknown kind {number}; known are {known}.")
    row = shape[-1] if shape else 1
    if 0 in shape or row % kind.block_length:
        raise GGUFSyntaxError(
            f"{what} has the impossible shape {list(shape)}: rows of {kind.name} "
            f"hold a multiple of {kind.block_length} numbers."
        )
    start = cursor.uint64(what)
    size = math.prod(shape) // kind.block_length * kind.block_bytes
    return GGUFTensor(kind, shape, start, start + size)


def _placed(
    tensors: Mapping[str, GGUFTensor], cursor: GGUFCursor, alignment: int
) -> dict[str, GGUFTensor]:
    """Check where every tensor lies; return them with offsets from the start of the file."""
    base = -(-cursor.position // alignment) * alignment
    position = 0
    for name, tensor in sorted(tensors.items(), key=lambda item: (item[1].start, item[1].end)):
        if base + tensor.end > cursor.end:
            raise GGUFSyntaxError(
                f"tensor {name!r} ends at byte {base + tensor.end}, "
                f"but the file has only {cursor.end}. {FETCH_AGAIN}"
            )
        if tensor.start % alignment:
            raise GGUFSyntaxError(f"tensor {name!r} is not aligned to {alignment} bytes.")
        if tensor.start < position:
            raise GGUFSyntaxError(f"tensor {name!r} overlaps another tensor.")
        position = tensor.end
    return {
        name: GGUFTensor(tensor.kind, tensor.shape, base + tensor.start, base + tensor.end)
        for name, tensor in tensors.items()
    }
