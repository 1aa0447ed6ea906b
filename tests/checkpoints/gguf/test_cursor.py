from __future__ import annotations

import mmap
import struct
from typing import Any

import numpy as np
import pytest

from clearhead.checkpoints.gguf.cursor import (
    MOST_ARRAYS,
    MOST_STRINGS,
    GGUFCursor,
    GGUFSyntaxError,
)

UINT8, INT16, FLOAT32, BOOL, STRING, ARRAY = 0, 3, 6, 7, 8, 9


def cursor(data: bytes) -> GGUFCursor:
    mapped = mmap.mmap(-1, len(data))
    mapped.write(data)
    return GGUFCursor(mapped)


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def array(kind: int, count: int, items: bytes = b"") -> bytes:
    return struct.pack("<IIQ", ARRAY, kind, count) + items


def test_parts_one_after_another() -> None:
    place = cursor(b"GGUF" + struct.pack("<IQ", 7, 2**40) + text("é".encode()))
    assert place.take(4, "magic") == b"GGUF"
    assert (place.uint32("a"), place.uint64("b"), place.string("c")) == (7, 2**40, "é")
    assert place.position == place.end
    with pytest.raises(GGUFSyntaxError, match="the file ends inside d"):
        place.take(1, "d")


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (struct.pack("<Ih", INT16, -7), -7),
        (struct.pack("<If", FLOAT32, 0.5), 0.5),
        (struct.pack("<I?", BOOL, True), True),
        (struct.pack("<I", STRING) + text(b"abc"), "abc"),
        (array(STRING, 2, text(b"a") + text(b"")), ["a", ""]),
    ],
)
def test_values(data: bytes, value: Any) -> None:
    assert cursor(data).value("x") == value


def test_arrays_of_numbers_and_of_arrays() -> None:
    numbers = cursor(array(UINT8, 3, b"\1\2\3")).value("x")
    assert np.array_equal(numbers, np.array([1, 2, 3], np.uint8))
    inner = struct.pack("<IQ", UINT8, 1) + b"\7"
    assert [part.tolist() for part in cursor(array(ARRAY, 2, inner * 2)).value("x")] == [[7], [7]]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (struct.pack("<I", 99), "unknown type number 99"),
        (struct.pack("<IB", BOOL, 2), "neither 0 nor 1"),
        (struct.pack("<I", STRING) + text(b"\xff"), "not valid UTF-8"),
        (array(UINT8, 2**60), "the file ends inside x"),
        (array(STRING, 2, text(b"a") + struct.pack("<Q", 9)), "the file ends inside x"),
        (array(ARRAY, 1, struct.pack("<IQ", ARRAY, 1) * 5), "nests arrays more than 4 deep"),
    ],
)
def test_faults(data: bytes, message: str) -> None:
    with pytest.raises(GGUFSyntaxError, match=message):
        cursor(data).value("x")


def test_a_name_that_is_too_long() -> None:
    with pytest.raises(GGUFSyntaxError, match="x claims 5 bytes; at most 3 go"):
        cursor(text(b"abcde")).string("x", longest=3)


def test_more_arrays_or_texts_than_any_file_has() -> None:
    inner = struct.pack("<IQ", UINT8, 0)
    many = MOST_ARRAYS + 1
    with pytest.raises(GGUFSyntaxError, match="x is one of more than 16,384 nested arrays"):
        cursor(array(ARRAY, many, inner * many)).value("x")
    assert len(cursor(array(ARRAY, 3, inner * 3)).value("x")) == 3
    with pytest.raises(GGUFSyntaxError, match="x claims 4,194,305 texts; at most 4,194,304 go"):
        cursor(array(STRING, MOST_STRINGS + 1, bytes(8 * (MOST_STRINGS + 1)))).value("x")
