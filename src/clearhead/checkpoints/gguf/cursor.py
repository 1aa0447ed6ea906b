"""A position in a mapped GGUF file that cannot leave it."""

from __future__ import annotations

import mmap
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

DEEPEST_ARRAY = 4
MOST_ARRAYS = 2**14  # arrays inside arrays, in one file; no known key has any
MOST_STRINGS = 2**22  # of one array; the largest vocabularies have 2¹⁸, with 2²⁰ merges
LONGEST_NAME = 65_535

_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")
_BOOL, _STRING, _ARRAY = 7, 8, 9
_NUMBERS: dict[int, np.dtype[Any]] = {
    0: np.dtype("<u1"),
    1: np.dtype("<i1"),
    2: np.dtype("<u2"),
    3: np.dtype("<i2"),
    4: np.dtype("<u4"),
    5: np.dtype("<i4"),
    6: np.dtype("<f4"),
    _BOOL: np.dtype("<u1"),
    10: np.dtype("<u8"),
    11: np.dtype("<i8"),
    12: np.dtype("<f8"),
}


class GGUFSyntaxError(Exception):
    """A fault in the header; the reader adds the path of the file."""


class GGUFCursor:
    """Reads the parts of a GGUF header one after another, each checked against the file's end.

    No memory is allocated for a count in the file before the count is known to fit.
    """

    def __init__(self, data: mmap.mmap) -> None:
        self.data = data
        self.position = 0
        self.end = len(data)
        self._inner_arrays = 0

    def take(self, count: int, what: str) -> bytes:
        """Return the next ``count`` bytes."""
        start = self._advance(count, what)
        return self.data[start : self.position]

    def uint32(self, what: str) -> int:
        """Return the next unsigned 32-bit number."""
        return int(_U32.unpack(self.take(4, what))[0])

    def uint64(self, what: str) -> int:
        """Return the next unsigned 64-bit number."""
        return int(_U64.unpack(self.take(8, what))[0])

    def string(self, what: str, longest: int | None = None) -> str:
        """Return the next string: a 64-bit length, then that many bytes of UTF-8."""
        length = self.uint64(what)
        if longest is not None and length > longest:
            raise GGUFSyntaxError(f"{what} claims {length} bytes; at most {longest} go.")
        return _decoded(self.take(length, what), what)

    def value(self, what: str) -> Any:
        """Return the next metadata value: a type number, then the value itself."""
        return self._value(self.uint32(what), what, DEEPEST_ARRAY)

    def _value(self, type_number: int, what: str, depth: int) -> Any:
        if type_number == _STRING:
            return self.string(what)
        if type_number == _ARRAY:
            return self._array(what, depth)
        return self._numbers(type_number, 1, what)[0].item()

    def _array(self, what: str, depth: int) -> Any:
        if depth == 0:
            raise GGUFSyntaxError(f"{what} nests arrays more than {DEEPEST_ARRAY} deep.")
        type_number = self.uint32(what)
        count = self.uint64(what)
        if type_number == _STRING:
            return self._strings(count, what)
        if type_number == _ARRAY:
            self._check_remaining(12 * count, what)
            self._inner_arrays += count
            if self._inner_arrays > MOST_ARRAYS:
                raise GGUFSyntaxError(f"{what} is one of more than {MOST_ARRAYS:,} nested arrays.")
            return [self._array(what, depth - 1) for _ in range(count)]
        return self._numbers(type_number, count, what)

    def _numbers(self, type_number: int, count: int, what: str) -> NDArray[Any]:
        dtype = _NUMBERS.get(type_number)
        if dtype is None:
            raise GGUFSyntaxError(f"{what} has the unknown type number {type_number}.")
        numbers = np.frombuffer(self.take(count * dtype.itemsize, what), dtype)
        if type_number == _BOOL:
            if numbers.size and numbers.max() > 1:
                raise GGUFSyntaxError(f"{what} holds a truth value that is neither 0 nor 1.")
            return numbers.view(np.bool_)
        return numbers

    def _strings(self, count: int, what: str) -> list[str]:
        # The hot loop: a vocabulary has 100,000 of these, so no method call per string.
        self._check_remaining(8 * count, what)
        if count > MOST_STRINGS:
            raise GGUFSyntaxError(f"{what} claims {count:,} texts; at most {MOST_STRINGS:,} go.")
        data, position, end = self.data, self.position, self.end
        unpack = _U64.unpack_from
        strings = []
        for _ in range(count):
            start = position + 8
            if start > end:
                raise GGUFSyntaxError(_too_short(what))
            position = start + unpack(data, position)[0]
            if position > end:
                raise GGUFSyntaxError(_too_short(what))
            strings.append(data[start:position])
        self.position = position
        return [_decoded(string, what) for string in strings]

    def _advance(self, count: int, what: str) -> int:
        self._check_remaining(count, what)
        start = self.position
        self.position += count
        return start

    def _check_remaining(self, count: int, what: str) -> None:
        if count > self.end - self.position:
            raise GGUFSyntaxError(_too_short(what))


def _too_short(what: str) -> str:
    return f"the file ends inside {what}."


def _decoded(text: bytes, what: str) -> str:
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise GGUFSyntaxError(f"{what} is not valid UTF-8 ({error.reason}).") from None
