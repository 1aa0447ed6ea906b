from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from clearhead.checkpoints.safetensors.file import SafetensorsFile, write_safetensors
from clearhead.checkpoints.safetensors.header import DTYPE_BYTES, LONGEST_HEADER
from clearhead.errors import CheckpointError, InputError


def packed(header: object, data: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(dtype: object, shape: object, start: object, end: object) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


SOUND = packed(
    {
        "__metadata__": {"format": "pt"},
        "bias": entry("F16", [3], 0, 6),
        "weight": entry("F32", [2, 5], 6, 46),
    },
    bytes(range(46)),
)


@pytest.fixture
def opened(tmp_path: Path) -> Callable[[bytes], SafetensorsFile]:
    def write_and_open(content: bytes) -> SafetensorsFile:
        path = tmp_path / "model.safetensors"
        path.write_bytes(content)
        return SafetensorsFile(path)

    return write_and_open


def test_reads_what_the_package_wrote(tmp_path: Path) -> None:
    tensors = {
        "float": torch.randn(2, 3, 5),
        "half": torch.randn(7).half(),
        "brain": torch.randn(11, 13).bfloat16(),
        "whole": torch.arange(17),
        "truth": torch.tensor([True, False, True]),
        "scalar": torch.tensor(2.5),
        "empty": torch.empty(0, 19),
    }
    save_file(tensors, tmp_path / "model.safetensors", metadata={"a": "b"})
    file = SafetensorsFile(tmp_path / "model.safetensors")
    assert file.metadata == {"a": "b"}
    assert set(file.names()) == set(tensors)
    for name, tensor in tensors.items():
        assert file.shape(name) == tuple(tensor.shape)
        assert file.dtype(name) == tensor.dtype
        assert torch.equal(file.tensor(name), tensor)


def test_one_number_by_hand(opened: Callable[[bytes], SafetensorsFile]) -> None:
    data = struct.pack("<3f", 1.5, -2.0, 0.25)
    file = opened(packed({"x": entry("F32", [3], 0, 12)}, data))
    assert file.tensor("x").tolist() == [1.5, -2.0, 0.25]


def test_tensors_are_mapped_and_writing_to_one_leaves_the_file_alone(
    opened: Callable[[bytes], SafetensorsFile],
) -> None:
    file = opened(SOUND)
    before = file.path.read_bytes()
    file.tensor("weight").fill_(1)
    assert file.path.read_bytes() == before


def test_every_dtype_has_its_size(opened: Callable[[bytes], SafetensorsFile]) -> None:
    for name, size in DTYPE_BYTES.items():
        file = opened(packed({"x": entry(name, [3], 0, 3 * size)}, bytes(3 * size)))
        assert file.tensor("x").dtype == file.dtype("x")
        assert file.dtype("x").itemsize == size


def test_unknown_name(opened: Callable[[bytes], SafetensorsFile]) -> None:
    file = opened(SOUND)
    for read in (file.tensor, file.shape, file.dtype):
        with pytest.raises(CheckpointError, match="has no tensor 'wait'"):
            read("wait")


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "is empty"),
        (SOUND[:5], "cannot hold the 8-byte header length"),
        (SOUND[:30], "header claims .* bytes, but only 22 follow"),
        (SOUND[:-1], "ends at byte 46 of the data, but the file holds only 45"),
        (SOUND + b"x", "tensors end at byte 46, but the data has 47"),
        (packed({}, length=2**64 - 1), "header claims 18446744073709551615 bytes"),
        (packed({}, length=LONGEST_HEADER + 1), "header claims 100000001 bytes, but only"),
        (packed(b"{"), "not valid JSON"),
        (packed(b"\xff\xfe{}"), "not valid JSON"),
        (packed(b"[" * 100_000), "nested too deeply"),
        (packed([]), "not a JSON object"),
        (packed({"__metadata__": {"a": 1}}), "not a map from strings to strings"),
        (packed({"__metadata__": []}), "not a map from strings to strings"),
        (packed({"x": 1}), "wants exactly dtype, shape and data_offsets"),
        (packed({"x": {"dtype": "F32"}}), "wants exactly dtype, shape and data_offsets"),
        (packed({"x": entry("F4", [2], 0, 1)}, b"x"), "unknown dtype 'F4'"),
        (packed({"x": entry(7, [2], 0, 1)}, b"x"), "unknown dtype '7'"),
        (packed({"x": entry("U8", [-1], 0, 1)}, b"x"), r"impossible shape \[-1\]"),
        (packed({"x": entry("U8", [1.0], 0, 1)}, b"x"), "impossible shape"),
        (packed({"x": entry("U8", [True], 0, 1)}, b"x"), "impossible shape"),
        (packed({"x": entry("U8", 1, 0, 1)}, b"x"), "impossible shape"),
        (packed({"x": entry("U8", [1] * 17, 0, 1)}, b"x"), "impossible shape"),
        (packed({"x": entry("U8", [0, 2**62, 3], 0, 0)}), "impossible shape"),
        (packed({"x": entry("U8", [2**40, 2**40], 0, 1)}, b"x"), "impossible shape"),
        (packed({"x": entry("F32", [3], 0, 8)}, bytes(8)), "needs 12 bytes, .* span 8"),
        (packed({"x": entry("U8", [1], 1, 0)}, b"x"), "impossible offsets"),
        (packed({"x": entry("U8", [1], -1, 0)}, b"x"), "impossible offsets"),
        (packed({"x": entry("U8", [1], 0, None)}, b"x"), "impossible offsets"),
        (packed({"x": entry("U8", [9], 0, 9)}, b"x"), "ends at byte 9 of the data"),
        (
            packed({"x": entry("U8", [2], 0, 2), "y": entry("U8", [2], 1, 3)}, b"xyz"),
            "'y' overlaps another tensor",
        ),
        (
            packed({"x": entry("U8", [1], 0, 1), "y": entry("U8", [1], 2, 3)}, b"xyz"),
            "'y' leaves a hole at byte 1",
        ),
        (packed(b'{"x": {}, "x": {}}'), "lists 'x' twice"),
        (packed(b'{"x": {"dtype":"U8","dtype":"I8"}}'), "lists 'dtype' twice"),
    ],
)
def test_hostile_files_are_refused(
    opened: Callable[[bytes], SafetensorsFile], content: bytes, match: str
) -> None:
    with pytest.raises(CheckpointError, match=match):
        opened(content)


def test_header_over_the_limit_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large.safetensors"
    with path.open("wb") as file:  # sparse: takes no space
        file.write(struct.pack("<Q", LONGEST_HEADER + 1))
        file.truncate(LONGEST_HEADER + 100)
    with pytest.raises(CheckpointError, match="header claims 100000001 bytes; at most"):
        SafetensorsFile(path)


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"cannot be read: No such file"):
        SafetensorsFile(tmp_path / "nothing.safetensors")
    with pytest.raises(CheckpointError, match="is a folder"):
        SafetensorsFile(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CheckpointError, match="not an ordinary file"):
        SafetensorsFile(tmp_path / "pipe")
    with pytest.raises(CheckpointError, match="cannot be read"):
        SafetensorsFile("nul\0byte")


def test_truncated_anywhere(opened: Callable[[bytes], SafetensorsFile]) -> None:
    for length in range(len(SOUND)):
        with pytest.raises(CheckpointError):
            opened(SOUND[:length])


def read_everything(path: Path) -> None:
    file = SafetensorsFile(path)
    for name in file.names():
        tensor = file.tensor(name)
        assert tuple(tensor.shape) == file.shape(name)
        tensor.clone()


def changed(content: bytes, edits: list[tuple[str, int, bytes]]) -> bytes:
    for how, where, new in edits:
        position = where % (len(content) + 1)
        skip = {"replace": len(new), "insert": 0, "cut": len(content)}[how]
        content = content[:position] + new + content[position + skip :]
    return content


EDITS = st.lists(
    st.tuples(
        st.sampled_from(["replace", "insert", "cut"]),
        st.integers(0, 2**16),
        st.one_of(
            st.binary(max_size=9),
            st.sampled_from([b'"', b"-", b"9" * 20, b"[", b"{}", b"\xff" * 8, b",", b"1e99"]),
        ),
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=300, deadline=None)
@given(EDITS)
def test_fuzzed_files_raise_checkpoint_errors_only(
    tmp_path_factory: pytest.TempPathFactory, edits: list[tuple[str, int, bytes]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzzed.safetensors"
    path.write_bytes(changed(SOUND, edits))
    tracemalloc.start()
    try:
        read_everything(path)
    except CheckpointError:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 1_000_000


def test_what_is_written_comes_back_and_the_package_reads_it(tmp_path: Path) -> None:
    tensors = {"a": torch.randn(2, 3), "turned": torch.randn(5, 7).T, "part": torch.randn(11)[3:]}
    path = tmp_path / "model.safetensors"
    write_safetensors(path, tensors, {"step": "13"})
    file = SafetensorsFile(path)
    assert file.metadata == {"format": "pt", "step": "13"}
    by_package = load_file(path)
    for name, tensor in tensors.items():
        assert torch.equal(file.tensor(name), tensor)
        assert torch.equal(by_package[name], tensor)


def test_tied_tensors_are_written_once_and_found_under_every_name(tmp_path: Path) -> None:
    weight = torch.randn(101, 103)
    path = tmp_path / "model.safetensors"
    write_safetensors(path, {"embed": weight, "head": weight, "flat": weight.view(-1)})
    assert set(load_file(path)) == {"embed", "flat"}
    file = SafetensorsFile(path)
    assert set(file.names()) == {"embed", "head", "flat"}
    assert file.shape("head") == (101, 103)
    assert file.dtype("head") == torch.float32
    assert torch.equal(file.tensor("head"), weight)
    assert torch.equal(file.tensor("flat"), weight.view(-1))
    assert "clearhead.tied" not in file.metadata


@pytest.mark.parametrize("tied", ["[]", "{", '{"x": "x"}', '{"y": "z"}', '{"y": 1}', '{"y": []}'])
def test_hostile_ties(opened: Callable[[bytes], SafetensorsFile], tied: str) -> None:
    header = {"__metadata__": {"clearhead.tied": tied}, "x": entry("U8", [1], 0, 1)}
    with pytest.raises(CheckpointError, match=r"bad clearhead\.tied"):
        opened(packed(header, b"x"))


def test_what_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    with pytest.raises(InputError, match="'x' cannot be written: it is on the meta device"):
        write_safetensors(path, {"x": torch.empty(2, device="meta")})
    with pytest.raises(InputError, match="__metadata__"):
        write_safetensors(path, {"__metadata__": torch.ones(1)})
    with pytest.raises(CheckpointError, match=r"cannot write .*nowhere"):
        write_safetensors(tmp_path / "nowhere" / "x.safetensors", {"x": torch.ones(1)})
    assert list(tmp_path.iterdir()) == []


def test_full_disk_leaves_the_old_file_and_no_half_written_one(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    write_safetensors(path, {"old": torch.ones(3)})
    program = """
import resource, sys, torch
from clearhead.checkpoints.safetensors.file import write_safetensors
from clearhead.errors import CheckpointError
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    write_safetensors(sys.argv[1], {"new": torch.ones(100_003)})
except CheckpointError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
    )
    assert "cannot write" in done.stdout
    assert "is the disk full" in done.stdout
    assert SafetensorsFile(path).names() == ["old"]
    assert [found.name for found in tmp_path.iterdir()] == ["model.safetensors"]
