"""Token files: what is written is what is read, in memory and on the disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from clearhead.errors import CheckpointError
from clearhead.training.data.tokens.file import TokenFile, TokenWriter

DOCUMENTS = [[7, 11, 13], [17], [65_535, 2, 3, 5, 19]]


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32])
@pytest.mark.parametrize("kept", [True, False])
def test_what_is_written_is_read(
    dtype: type[np.unsignedinteger], kept: bool, tmp_path: Path
) -> None:
    folder = tmp_path if kept else None
    with TokenWriter(folder, "learned", np.dtype(dtype)) as writer:
        for ids in DOCUMENTS:
            writer.write(ids[:2])
            writer.write(np.array(ids[2:], np.int64))
            writer.end()
            writer.end()  # a document without ids is none
        file = writer.finished()
    files = [file, TokenFile.open(tmp_path, "learned", np.dtype(dtype))] if kept else [file]
    for found in files:
        assert [found[n].tolist() for n in range(len(found))] == DOCUMENTS
        assert found.total == 9 and found.begins.tolist() == [0, 3, 4]
    assert TokenFile.of(file) is file


def test_nothing() -> None:
    assert (len(TokenFile.of([])), TokenFile.of([[], []]).total) == (0, 0)
    with TokenWriter(None, "held", np.dtype(np.uint16)) as writer:
        assert len(writer.finished()) == 0


def test_files_that_do_not_fit(tmp_path: Path) -> None:
    (tmp_path / "held.ids").write_bytes(b"\1\0\2\0")
    (tmp_path / "held.ends").write_bytes(np.array([1, 3], "<i8").tobytes())
    with pytest.raises(CheckpointError, match="do not fit their tokens"):
        TokenFile.open(tmp_path, "held", np.dtype(np.uint16))
    (tmp_path / "held.ids").write_bytes(b"\1\0\2")
    with pytest.raises(CheckpointError, match=r"held.ids is damaged: it has 3 bytes"):
        TokenFile.open(tmp_path, "held", np.dtype(np.uint16))
    with pytest.raises(CheckpointError, match="cannot be read"):
        TokenFile.open(tmp_path, "learned", np.dtype(np.uint16))
