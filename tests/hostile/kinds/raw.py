"""Changes of bytes that know nothing: flip, cut, extend, repeat, overwrite."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

LUMPS = (
    b"\x00",
    b"\xff" * 8,
    b"\x00" * 8,
    b"\xff\xff\xff\x7f",
    b"\x00\x00\xc0\x7f",
    b"\x00\x00\x80\x7f",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    b"\xf8\x88\x80\x80\x80",
    b"\r",
    b"\x1b[2J",
    b"\xe2\x80\xae",
    b"{" * 40,
    b"\x80",
)


def flip(data: bytearray, random: Random) -> None:
    if data:
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)


def cut(data: bytearray, random: Random) -> None:
    del data[random.randrange(len(data) + 1) :]


def extend(data: bytearray, random: Random) -> None:
    data += random.choice(LUMPS) * random.choice((1, 1, 7, 1000))


def insert(data: bytearray, random: Random) -> None:
    place = random.randrange(len(data) + 1)
    data[place:place] = random.choice(LUMPS)


def overwrite(data: bytearray, random: Random) -> None:
    lump = random.choice(LUMPS)
    place = random.randrange(max(1, len(data) - len(lump)))
    data[place : place + len(lump)] = lump


def repeat(data: bytearray, random: Random) -> None:
    start, end = sorted(random.randrange(len(data) + 1) for _ in range(2))
    data[end:end] = data[start:end]


def remove(data: bytearray, random: Random) -> None:
    start = random.randrange(len(data) + 1)
    del data[start : start + random.choice((1, 2, 8, 100))]


def number(data: bytearray, random: Random) -> None:
    """Another whole number of 32 or 64 bits at an even place."""
    width = random.choice((4, 8))
    value = random.choice((0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1, 255))
    place = random.randrange(max(1, len(data) // 4)) * 4
    data[place : place + width] = (value % 2 ** (8 * width)).to_bytes(width, "little")


CHANGES: tuple[Callable[[bytearray, Random], None], ...] = (
    flip,
    flip,
    cut,
    extend,
    insert,
    overwrite,
    repeat,
    remove,
    number,
)


class _Raw:
    """Cuts at sixteen places and every lump at sixteen places; then anything."""

    places = 16

    def steps(self, data: bytes) -> int:
        return self.places * (1 + len(LUMPS))

    def step(self, data: bytes, number: int) -> bytes:
        place = len(data) * (number % self.places) // self.places
        which = number // self.places
        if which == 0:
            return data[:place]
        lump = LUMPS[which - 1]
        return data[:place] + lump + data[place + len(lump) :]

    def changed(self, data: bytes, random: Random) -> bytes:
        made = bytearray(data)
        for _ in range(random.choice((1, 1, 1, 2, 5))):
            random.choice(CHANGES)(made, random)
        return bytes(made)


RAW = _Raw()
