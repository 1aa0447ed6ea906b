"""Documents as token ids in a file, mapped into memory: the operating system reads what is used.

::

    learned.ids    all ids one after another, 2 bytes each (4 for a vocabulary over 65,536)
    learned.ends   where each document ends, 8 bytes each
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clearhead.errors import CheckpointError

ENDS = np.dtype("<i8")


class TokenFile:
    """Documents of token ids; number n is an array that is read when it is asked for."""

    def __init__(self, ids: NDArray[Any], ends: NDArray[np.int64]) -> None:
        self.ids, self.ends = ids, ends
        self.begins = np.concatenate([np.zeros(1, np.int64), ends])[:-1]  # of each document
        if (int(ends[-1]) if len(ends) else 0) != len(ids) or (ends < self.begins).any():
            raise CheckpointError("the ends of the documents do not fit their tokens.")

    @classmethod
    def of(cls, documents: TokenFile | Sequence[Sequence[int]]) -> TokenFile:
        """Documents that are in memory; empty ones are left out."""
        if isinstance(documents, TokenFile):
            return documents
        kept = [np.asarray(ids, np.int32) for ids in documents if len(ids)]
        ids = np.concatenate(kept) if kept else np.zeros(0, np.int32)
        return cls(ids, np.cumsum([len(one) for one in kept], dtype=np.int64))

    @classmethod
    def open(cls, folder: Path, name: str, dtype: np.dtype[Any]) -> TokenFile:
        """The two files of this name in a folder."""
        return cls(_mapped(folder / f"{name}.ids", dtype), _mapped(folder / f"{name}.ends", ENDS))

    def __getitem__(self, number: int) -> NDArray[Any]:
        return self.ids[self.begins[number] : self.ends[number]]

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def total(self) -> int:
        """The number of all tokens."""
        return len(self.ids)


class TokenWriter:
    """Writes documents, a piece at a time: into a folder, or into memory if there is none."""

    def __init__(self, folder: Path | None, name: str, dtype: np.dtype[Any]) -> None:
        self._folder, self._name, self._dtype = folder, name, dtype.newbyteorder("<")
        self._pieces: list[NDArray[Any]] = []
        self._file = None if folder is None else (folder / f"{name}.ids").open("wb")
        self._ends = array("q")
        self.total = 0

    def __enter__(self) -> TokenWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        place: TracebackType | None,
    ) -> None:  # fmt: skip
        if self._file is not None:
            self._file.close()

    def write(self, ids: NDArray[Any] | Sequence[int]) -> None:
        """Add ids to the document."""
        piece = np.asarray(ids).astype(self._dtype)
        self.total += len(piece)
        if self._file is None:
            self._pieces.append(piece)
        else:
            self._file.write(piece.tobytes())

    def end(self) -> None:
        """End the document; one without any id does not count."""
        if self.total > (self._ends[-1] if self._ends else 0):
            self._ends.append(self.total)

    def finished(self) -> TokenFile:
        """What was written."""
        ends = np.array(self._ends, ENDS)
        if self._file is None or self._folder is None:
            ids = np.concatenate([np.zeros(0, self._dtype), *self._pieces])
            return TokenFile(ids, ends)
        self._file.close()
        (self._folder / f"{self._name}.ends").write_bytes(ends.tobytes())
        return TokenFile.open(self._folder, self._name, self._dtype)


def _mapped(path: Path, dtype: np.dtype[Any]) -> NDArray[Any]:
    """The numbers in a file; an empty file cannot be mapped."""
    try:
        size = path.stat().st_size
        if size % dtype.itemsize:
            raise CheckpointError(f"{path} is damaged: it has {size} bytes.")
        return np.memmap(path, dtype, mode="r") if size else np.zeros(0, dtype)
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror or error}.") from None
