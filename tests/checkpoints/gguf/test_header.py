from __future__ import annotations

import struct
from pathlib import Path

import gguf
import numpy as np
import pytest

from clearhead.checkpoints.gguf.header import read_gguf_header
from clearhead.errors import CheckpointError


def test_a_file_of_the_reference_package(tmp_path: Path) -> None:
    path = tmp_path / "a.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_uint32("seven", 7)
    numbers = np.arange(6, dtype=np.float32).reshape(2, 3)
    writer.add_tensor("a", numbers)
    writer.add_tensor("b", np.ones(5, np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    header = read_gguf_header(path)
    assert header.metadata["seven"] == 7
    assert {name: tensor.shape for name, tensor in header.tensors.items()} == {
        "a": (2, 3), "b": (5,),
    }  # fmt: skip
    entry = header.tensors["a"]
    assert header.data[entry.start : entry.end] == numbers.tobytes()
    assert header.tensors["b"].kind.name == "F16"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"GGML" + bytes(20), r"begins with b'GGML'"),
        (struct.pack("<4sI", b"GGUF", 1) + bytes(16), "has version 1"),
        (struct.pack(">4sI", b"GGUF", 3) + bytes(16), "big-endian"),
        (struct.pack("<4sIQQ", b"GGUF", 3, 2**60, 0), "bytes cannot hold"),
        (struct.pack("<4sIQQ", b"GGUF", 3, 0, 70_000) + bytes(13 * 70_000), "at most .* 65,536 go"),
        (b"GGUF", "the file ends inside the version"),
    ],
)
def test_broken_headers(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "a.gguf"
    path.write_bytes(data)
    with pytest.raises(CheckpointError, match=message):
        read_gguf_header(path)
