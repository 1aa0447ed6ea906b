"""Changes of GGUF files: every number and text of the header replaced, tensors moved and recast."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from functools import lru_cache
from random import Random

from tests.hostile.kinds.raw import RAW
from tests.hostile.kinds.safetensors import FLOATS

WIDTHS = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
BAD_NUMBERS = (
    0,
    1,
    2,
    3,
    5,
    8,
    9,
    11,
    12,
    14,
    30,
    31,
    32,
    127,
    128,
    255,
    2**15,
    2**16,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**32,
    2**40,
    2**62,
    2**63 - 1,
    2**63,
    2**64 - 1,
    0x7F800000,
    0xFF800000,
    0x7FC00000,
    0x00000001,
)
BAD_TEXTS = (
    b"",
    b"\x00",
    b"\xff",
    b"x",
    b"a" * 70_000,
    b"\xed\xa0\x80",
    b"\x1b[2J",
    b"general.name",
)


@dataclass(frozen=True)
class Field:
    """A part of the header: a number of some bytes, or a text (its length is another field)."""

    what: str
    data: bytes


def header_fields(data: bytes) -> tuple[list[Field], bytes]:
    """The header in parts, and the rest of the file."""
    fields: list[Field] = []
    place = 0

    def take(what: str, width: int) -> int:
        nonlocal place
        if place + width > len(data):
            raise ValueError("an earlier change broke the header")
        fields.append(Field(what, data[place : place + width]))
        place += width
        return int.from_bytes(fields[-1].data, "little")

    def text() -> None:
        take("text", take("length", 8))

    def value(kind: int) -> None:
        if kind == 8:
            text()
        elif kind == 9:
            inner, count = take("type", 4), take("count", 8)
            for _ in range(count):
                value(inner)
        else:
            take("value", WIDTHS[kind])

    take("magic", 4), take("version", 4)
    tensors, pairs = take("tensors", 8), take("pairs", 8)
    for _ in range(pairs):
        text()
        value(take("type", 4))
    for _ in range(tensors):
        text()
        for _ in range(take("axes", 4)):
            take("axis", 8)
        take("kind", 4), take("offset", 8)
    return fields, data[place:]


@lru_cache(maxsize=64)
def few_fields(data: bytes) -> tuple[list[Field], bytes, list[int]]:
    """The parts, the rest, and the numbers of the parts to walk over: long arrays are thinned."""
    fields, rest = header_fields(data)
    kept, run = [], 0
    for number, field in enumerate(fields):
        array = field.what in ("value", "text", "length")
        run = run + 1 if array else 0
        if run < 12 or number % 17 == 0:
            kept.append(number)
    return fields, rest, kept


def with_field(data: bytes, number: int, new: bytes, *, follow: bool = False) -> bytes:
    """The file with one part replaced; ``follow``: the length before a text follows it."""
    fields, rest, _ = few_fields(data)
    made = list(fields)
    made[number] = replace(made[number], data=new)
    if follow and number and made[number - 1].what == "length":
        made[number - 1] = replace(made[number - 1], data=len(new).to_bytes(8, "little"))
    return _whole(b"".join(field.data for field in made), data, rest)


def _whole(header: bytes, data: bytes, rest: bytes) -> bytes:
    """The tensors stay aligned to 32 bytes, so that one change is one change."""
    padding = (len(data) - len(rest) + 31) // 32 * 32 - (len(data) - len(rest))
    return header + b"\x00" * (-len(header) % 32) + rest[padding:]


def changes_of(field: Field) -> int:
    return len(BAD_TEXTS) if field.what == "text" else len(BAD_NUMBERS)


class _Gguf:
    def steps(self, data: bytes) -> int:
        fields, _, kept = few_fields(data)
        return sum(changes_of(fields[number]) for number in kept)

    def step(self, data: bytes, number: int) -> bytes:
        fields, _, kept = few_fields(data)
        for place in kept:
            field = fields[place]
            if number < changes_of(field):
                return self._changed_field(data, place, number)
            number -= changes_of(field)
        raise IndexError(number)

    def _changed_field(self, data: bytes, place: int, which: int) -> bytes:
        field = few_fields(data)[0][place]
        if field.what == "text":
            return with_field(data, place, BAD_TEXTS[which], follow=True)
        width = len(field.data)
        value = BAD_NUMBERS[which] % 2 ** (8 * width)
        return with_field(data, place, value.to_bytes(width, "little"))

    def changed(self, data: bytes, random: Random) -> bytes:
        try:
            fields, rest, _ = few_fields(data)
        except (KeyError, ValueError, RecursionError):
            return RAW.changed(data, random)
        way = random.random()
        if way < 0.3:
            place = random.randrange(len(fields))
            return self._changed_field(data, place, random.randrange(changes_of(fields[place])))
        if way < 0.5:  # the value of another part of the same meaning
            place = random.randrange(len(fields))
            same = [field for field in fields if field.what == fields[place].what]
            return with_field(data, place, random.choice(same).data, follow=random.random() < 0.5)
        if way < 0.6:  # a value of another type: the type and as many bytes as it takes
            return _retyped(data, random)
        if way < 0.85:
            made = bytearray(rest)
            for _ in range(random.choice((1, 3, 20))):
                number = random.choice((*FLOATS, b"\x00\x7c", b"\x00\xfc", b"\xff\x7f"))
                spot = random.randrange(max(1, len(made) - 8))
                made[spot : spot + len(number)] = number
            return data[: len(data) - len(rest)] + bytes(made)
        return RAW.changed(data, random)


VALUES = (
    struct.pack("<IB", 0, 7),
    struct.pack("<Ib", 1, -1),
    struct.pack("<Ii", 5, -5),
    struct.pack("<If", 6, 1e38),
    struct.pack("<If", 6, float("nan")),
    struct.pack("<IB", 7, 1),
    struct.pack("<IB", 7, 2),
    struct.pack("<IQ", 8, 0),
    struct.pack("<IQ", 8, 3) + b"abc",
    struct.pack("<IIQ", 9, 4, 0),
    struct.pack("<IIQ", 9, 8, 1) + struct.pack("<Q", 1) + b"x",
    struct.pack("<IQ", 10, 2**63),
    struct.pack("<IIQ", 9, 6, 2) + struct.pack("<ff", 1.0, float("inf")),
    struct.pack("<Id", 12, 1e308),
    struct.pack("<IIQ", 9, 9, 1) + struct.pack("<IQ", 9, 0),
    struct.pack("<IQ", 11, 2**64 - 1),
    struct.pack("<IIQ", 9, 0, 50_000) + b"\x01" * 50_000,
)
"""Metadata values of every type, each with its type number."""


def _retyped(data: bytes, random: Random) -> bytes:
    fields, rest, _ = few_fields(data)
    starts = [n for n, field in enumerate(fields) if field.what == "type" and _is_scalar(fields, n)]
    place = random.choice(starts)
    end = place + (3 if fields[place].data == b"\x08\x00\x00\x00" else 2)
    made = [*fields[:place], Field("type", random.choice(VALUES)), *fields[end:]]
    return _whole(b"".join(field.data for field in made), data, rest)


def _is_scalar(fields: list[Field], number: int) -> bool:
    kind = int.from_bytes(fields[number].data, "little")
    return kind != 9 and fields[number - 1].what == "text"


GGUF = _Gguf()
