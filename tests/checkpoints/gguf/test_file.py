from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from clearhead.checkpoints.gguf.file import GGUFFile
from clearhead.checkpoints.gguf.kinds import KINDS
from clearhead.errors import CheckpointError

UINT8, UINT32, FLOAT32, BOOL, STRING, ARRAY, UINT64 = 0, 4, 6, 7, 8, 9, 10
F32, F16, Q4_1, Q8_0, Q6_K = 0, 1, 3, 8, 14


def text(value: str | bytes) -> bytes:
    encoded = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(encoded)) + encoded


def pair(key: str | bytes, type_number: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", type_number) + value


def array(type_number: int, count: int, items: bytes = b"") -> bytes:
    return struct.pack("<IQ", type_number, count) + items


def tensor(
    name: str, axes: list[int], kind: int, offset: int, axis_count: int | None = None
) -> bytes:
    count = len(axes) if axis_count is None else axis_count
    return text(name) + struct.pack(f"<I{len(axes)}QIQ", count, *axes, kind, offset)


def packed(
    pairs: list[bytes],
    tensors: list[bytes],
    data: bytes = b"",
    *,
    magic: bytes = b"GGUF",
    version: int = 3,
    tensor_count: int | None = None,
    pair_count: int | None = None,
    alignment: int = 32,
) -> bytes:
    counts = (
        len(tensors) if tensor_count is None else tensor_count,
        len(pairs) if pair_count is None else pair_count,
    )
    header = magic + struct.pack("<IQQ", version, *counts) + b"".join(pairs) + b"".join(tensors)
    return header + bytes(-len(header) % alignment) + data


PAIRS = [
    pair("general.architecture", STRING, text("llama")),
    pair("llama.block_count", UINT32, struct.pack("<I", 7)),
    pair("llama.epsilon", FLOAT32, struct.pack("<f", 0.5)),
    pair("flag", BOOL, b"\1"),
    pair("tokens", ARRAY, array(STRING, 3, text("a") + text("Ġthe") + text(""))),
    pair("kinds", ARRAY, array(UINT8, 5, bytes([2, 3, 5, 7, 11]))),
    pair("nested", ARRAY, array(ARRAY, 2, array(BOOL, 1, b"\0") + array(STRING, 1, text("x")))),
]
TENSORS = [
    tensor("norm", [3], F32, 0),
    tensor("quantised", [64, 2], Q4_1, 32),
    tensor("half", [5, 1, 3], F16, 128),
]
DATA = struct.pack("<3f", 1.5, -2.0, 0.25) + bytes(20) + bytes(range(80)) + bytes(16) + bytes(30)
SOUND = packed(PAIRS, TENSORS, DATA)


@pytest.fixture
def opened(tmp_path: Path) -> Callable[[bytes], GGUFFile]:
    def write_and_open(content: bytes) -> GGUFFile:
        path = tmp_path / "model.gguf"
        path.write_bytes(content)
        return GGUFFile(path)

    return write_and_open


def test_every_part_of_a_file_by_hand(opened: Callable[[bytes], GGUFFile]) -> None:
    file = opened(SOUND)
    kinds = file.metadata.pop("kinds")
    nested = file.metadata.pop("nested")
    assert file.metadata == {
        "general.architecture": "llama",
        "llama.block_count": 7,
        "llama.epsilon": 0.5,
        "flag": True,
        "tokens": ["a", "Ġthe", ""],
    }
    assert type(file.metadata["flag"]) is bool
    assert kinds.tolist() == [2, 3, 5, 7, 11]
    assert [list(inner) for inner in nested] == [[False], ["x"]]
    assert file.names() == ["norm", "quantised", "half"]
    assert [file.kind(name) for name in file.names()] == ["F32", "Q4_1", "F16"]
    assert [file.shape(name) for name in file.names()] == [(3,), (2, 64), (3, 1, 5)]
    assert file.tensor("norm").tolist() == [1.5, -2.0, 0.25]
    assert file.blocks("quantised").tobytes() == bytes(range(80))
    assert file.blocks("quantised").shape == (4, 20)


def test_a_stored_tensor_is_mapped_and_the_file_never_changes(
    opened: Callable[[bytes], GGUFFile],
) -> None:
    file = opened(SOUND)
    file.tensor("norm").fill_(9)
    assert file.path.read_bytes() == SOUND
    with pytest.raises(ValueError, match="read-only"):
        file.blocks("norm")[0] = 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_other_dtypes(opened: Callable[[bytes], GGUFFile], dtype: torch.dtype) -> None:
    file = opened(SOUND)
    assert file.tensor("norm", dtype).tolist() == [1.5, -2.0, 0.25]
    assert file.tensor("quantised", dtype).dtype == dtype
    assert torch.equal(file.tensor("quantised", dtype), file.tensor("quantised").to(dtype))


def test_reads_what_the_package_writes(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    numbers = np.random.default_rng(0).normal(size=(6, 256)).astype(np.float32)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(5)
    writer.add_token_list(["a", "b", "ü"])
    writer.add_token_scores([0.0, -1.0, -2.5])
    writer.add_custom_alignment(64)
    kinds = [gguf.GGMLQuantizationType[name] for name in ("F32", "F16", "BF16", "Q4_0", "Q8_0")]
    stored = {kind.name: gguf.quants.quantize(numbers, kind) for kind in kinds}
    for kind in kinds:
        writer.add_tensor(kind.name, stored[kind.name], raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    file = GGUFFile(path)
    assert file.metadata["llama.block_count"] == 5
    assert file.metadata["tokenizer.ggml.tokens"] == ["a", "b", "ü"]
    assert file.metadata["tokenizer.ggml.scores"].tolist() == [0.0, -1.0, -2.5]
    for kind in kinds:
        wanted = gguf.quants.dequantize(stored[kind.name], kind)
        assert file.kind(kind.name) == kind.name
        assert np.array_equal(file.tensor(kind.name).numpy(), wanted)


def test_unknown_name(opened: Callable[[bytes], GGUFFile]) -> None:
    file = opened(SOUND)
    for read in (file.tensor, file.shape, file.kind, file.blocks):
        with pytest.raises(CheckpointError, match="has no tensor 'wait'"):
            read("wait")


def deep(depth: int) -> bytes:
    value = array(UINT8, 0)
    for _ in range(depth):
        value = array(ARRAY, 1, value)
    return value


def one(item: bytes, data: bytes = bytes(256)) -> bytes:
    return packed([], [item], data)


def with_pair(item: bytes) -> bytes:
    return packed([item], [], bytes(64))


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "is empty"),
        (b"GG", "ends inside the magic bytes"),
        (packed([], [], magic=b"GGML"), "begins with b'GGML' instead of b'GGUF'"),
        (packed([], [], version=0x03000000), "big-endian"),
        (packed([], [], version=1), "version 1; clearhead reads versions 2 and 3"),
        (packed([], [], version=0), "version 0"),
        (packed([], [], version=4), "version 4"),
        (packed([], [], tensor_count=2**64 - 1), "claims 18446744073709551615 tensors"),
        (packed([], [], pair_count=2**64 - 1), "claims 0 tensors and 18446744073709551615"),
        (packed([], [], bytes(24), tensor_count=2), "which its 56 bytes cannot hold"),
        (with_pair(struct.pack("<Q", 2**64 - 1) + bytes(20)), "metadata pair 0 claims 18446"),
        (with_pair(struct.pack("<Q", 60_000) + bytes(20)), "ends inside the key of metadata pair"),
        (with_pair(pair(b"\xff\xfe", UINT8, b"\1")), "pair 0 is not valid UTF-8"),
        (with_pair(pair("a", STRING, text(b"\xff"))), "metadata 'a' is not valid UTF-8"),
        (with_pair(pair("a", STRING, struct.pack("<Q", 2**63))), "ends inside metadata 'a'"),
        (with_pair(pair("a", 13, bytes(8))), "metadata 'a' has the unknown type number 13"),
        (with_pair(pair("a", BOOL, b"\2")), "neither 0 nor 1"),
        (with_pair(pair("a", ARRAY, array(BOOL, 2, b"\0\7"))), "neither 0 nor 1"),
        (with_pair(pair("a", ARRAY, array(99, 0))), "unknown type number 99"),
        (with_pair(pair("a", ARRAY, array(UINT64, 2**61))), "ends inside metadata 'a'"),
        (with_pair(pair("a", ARRAY, array(STRING, 2**61))), "ends inside metadata 'a'"),
        (with_pair(pair("a", ARRAY, array(STRING, 2, text("x" * 9)[:-1] + b"\xff" * 8))), "ends"),
        (with_pair(pair("a", ARRAY, array(ARRAY, 2**60))), "ends inside metadata 'a'"),
        (with_pair(pair("a", ARRAY, deep(4))), "nests arrays more than 4 deep"),
        (with_pair(pair("a", ARRAY, deep(5000))), "nests arrays more than 4 deep"),
        (
            packed([pair("a", UINT8, b"\1"), pair("a", UINT8, b"\2")], [], bytes(32)),
            "metadata 'a' is given twice",
        ),
        (
            with_pair(pair("general.alignment", UINT32, struct.pack("<I", 24))),
            "general.alignment is 24; wanted a power of two",
        ),
        (with_pair(pair("general.alignment", UINT32, bytes(4))), "general.alignment is 0"),
        (with_pair(pair("general.alignment", STRING, text("x"))), "general.alignment is x"),
        (with_pair(pair("split.count", UINT32, struct.pack("<I", 3))), "one of 3 pieces"),
        (one(tensor("t", [1], F32, 0, axis_count=5)), "claims 5 axes; at most 4"),
        (one(tensor("t", [1], F32, 0, axis_count=2**32 - 1)), "claims 4294967295 axes"),
        (one(tensor("t", [1], 4, 0)), "unknown kind 4; known are F32, F16"),
        (one(tensor("t", [1], 2**31, 0)), "unknown kind 2147483648"),
        (one(tensor("t", [31], Q8_0, 0)), r"impossible shape \[31\]: rows of Q8_0"),
        (one(tensor("t", [128], Q6_K, 0)), r"impossible shape \[128\]: rows of Q6_K"),
        (one(tensor("t", [0, 3], F32, 0)), r"impossible shape \[3, 0\]"),
        (one(tensor("t", [2**63, 2**63, 2**63], F32, 0)), "but the file has only"),
        (one(tensor("t", [65], F32, 0)), "ends at byte 324, but the file has only 320"),
        (one(tensor("t", [1], F32, 2**64 - 32)), "but the file has only 320"),
        (one(tensor("t", [1], F32, 16)), "not aligned to 32 bytes"),
        (
            packed([], [tensor("t", [9], F32, 0), tensor("u", [9], F32, 32)], bytes(96)),
            "'u' overlaps another tensor",
        ),
        (
            packed([], [tensor("t", [1], F32, 0), tensor("t", [1], F32, 32)], bytes(64)),
            "'t' is listed twice",
        ),
    ],
)
def test_hostile_files_are_refused(
    opened: Callable[[bytes], GGUFFile], content: bytes, match: str
) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(CheckpointError, match=match):
            opened(content)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="cannot be read: No such file"):
        GGUFFile(tmp_path / "nothing.gguf")
    with pytest.raises(CheckpointError, match=r"wanted a GGUF file, but .* is a folder"):
        GGUFFile(tmp_path)


def test_truncated_anywhere(opened: Callable[[bytes], GGUFFile]) -> None:
    for length in range(len(SOUND)):
        with pytest.raises(CheckpointError):
            opened(SOUND[:length])


def changed(content: bytes, edits: list[tuple[str, int, bytes]]) -> bytes:
    for how, where, new in edits:
        position = where % (len(content) + 1)
        skip = {"replace": len(new), "insert": 0, "cut": len(content)}[how]
        content = content[:position] + new + content[position + skip :]
    return content


EDITS = st.lists(
    st.tuples(
        st.sampled_from(["replace", "replace", "insert", "cut"]),
        st.integers(0, 2**16),
        st.one_of(
            st.binary(min_size=1, max_size=9),
            st.integers(0, 40).map(lambda number: struct.pack("<I", number)),
            st.sampled_from([2**31, 2**32, 2**63, 2**64 - 1]).map(lambda n: struct.pack("<Q", n)),
        ),
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=400, deadline=None)
@given(EDITS)
def test_fuzzed_files_raise_checkpoint_errors_only(
    tmp_path_factory: pytest.TempPathFactory, edits: list[tuple[str, int, bytes]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzzed.gguf"
    path.write_bytes(changed(SOUND, edits))
    tracemalloc.start()
    try:
        file = GGUFFile(path)
        for name in file.names():
            assert tuple(file.tensor(name).shape) == file.shape(name)
    except CheckpointError:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 1_000_000


@pytest.mark.parametrize("number", KINDS)
def test_every_kind_reads_any_bytes(opened: Callable[[bytes], GGUFFile], number: int) -> None:
    kind = KINDS[number]
    data = np.random.default_rng(number).bytes(6 * kind.block_bytes)
    file = opened(one(tensor("t", [2 * kind.block_length, 3], number, 0), data))
    assert file.tensor("t").shape == (3, 2 * kind.block_length)
    assert file.tensor("t").dtype == torch.float32


@pytest.mark.download
def test_smollm2_is_read_as_the_package_reads_it(
    default_model_files: Callable[[str], Path],
) -> None:
    path = next(default_model_files("smollm2").glob("*.gguf"))
    file, oracle = GGUFFile(path), gguf.GGUFReader(path)
    assert file.names() == [tensor.name for tensor in oracle.tensors]
    for wanted in oracle.tensors:
        assert file.shape(wanted.name) == tuple(int(axis) for axis in wanted.shape[::-1])
        numbers = gguf.quants.dequantize(wanted.data, wanted.tensor_type)
        assert np.array_equal(file.tensor(wanted.name).numpy(), numbers)
    for key, field in oracle.fields.items():
        if not key.startswith("GGUF."):
            value = file.metadata[key]
            came = value.tolist() if isinstance(value, np.ndarray) else value
            assert came == field.contents()
