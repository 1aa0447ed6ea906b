"""Changes of safetensors files: the header as JSON, JSON inside its metadata, offsets, numbers."""

from __future__ import annotations

import json
import struct
from functools import lru_cache
from random import Random
from typing import Any

from tests.hostile.kinds.json_tree import EACH, Path, few_paths, parsed, tree_changed, tree_step
from tests.hostile.kinds.raw import RAW

FLOATS = [
    struct.pack("<f", number)
    for number in (float("nan"), float("inf"), float("-inf"), 3e38, -3e38, 1e-45, 0.0, -1.0)
] + [b"\xff" * 8, b"\x00" * 8, b"\xff" * 7 + b"\x7f"]


def split(data: bytes) -> tuple[str, bytes]:
    """The header's JSON, and the tensors' bytes."""
    length = int.from_bytes(data[:8], "little")
    return data[8 : 8 + length].decode(), data[8 + length :]


def joined(header: str, body: bytes) -> bytes:
    raw = header.encode("utf-8", "surrogatepass")
    return len(raw).to_bytes(8, "little") + raw + body


@lru_cache(maxsize=64)
def layers(data: bytes) -> list[tuple[str, Any, list[Path]]]:
    """The trees of a file: the header's, those inside its metadata, and a tensor named json."""
    header, body = split(data)
    tree, places = parsed(header)
    found = [("", tree, places)]
    for name, text in tree.get("__metadata__", {}).items():
        if text.startswith("{"):
            inner, _ = parsed(text)
            found.append((name, inner, few_paths(inner, 200)))
    if "json" in tree:
        start, end = tree["json"]["data_offsets"]
        inner, _ = parsed(body[start:end].decode())
        found.append(("json", inner, few_paths(inner, 200)))
    return found


def rebuilt(data: bytes, name: str, text: str) -> bytes:
    """The file with another text for one of its trees."""
    header, body = split(data)
    if not name:
        return joined(text, body)
    tree = json.loads(header)
    if name != "json":
        tree["__metadata__"][name] = text
        return joined(json.dumps(tree), body)
    raw = text.encode("utf-8", "surrogatepass")
    start, end = tree["json"]["data_offsets"]
    for entry in (tree[one] for one in tree if one != "__metadata__"):
        if entry["data_offsets"][0] >= end:
            entry["data_offsets"] = [o + len(raw) - (end - start) for o in entry["data_offsets"]]
    tree["json"] |= {"data_offsets": [start, start + len(raw)], "shape": [len(raw)]}
    return joined(json.dumps(tree), body[:start] + raw + body[end:])


class _Safetensors:
    def steps(self, data: bytes) -> int:
        return sum(len(places) for _, _, places in layers(data)) * EACH

    def step(self, data: bytes, number: int) -> bytes:
        for name, tree, places in layers(data):
            if number < len(places) * EACH:
                return rebuilt(data, name, tree_step(tree, places[number // EACH], number % EACH))
            number -= len(places) * EACH
        raise IndexError(number)

    def changed(self, data: bytes, random: Random) -> bytes:
        try:
            trees = layers(data)
        except (ValueError, RecursionError, AttributeError, KeyError, TypeError):
            return RAW.changed(data, random)
        way = random.random()
        if way < 0.45:
            name, tree, places = random.choice(trees)
            return rebuilt(data, name, tree_changed(tree, places, random))
        if way < 0.6:
            return _moved(data, random)
        if way < 0.75:
            return _as_other_numbers(data, random)
        return _other_numbers(data, random)


def _moved(data: bytes, random: Random) -> bytes:
    """Offsets swapped between two tensors, overlapping, shifted; or another header length."""
    header, body = split(data)
    if random.random() < 0.2:
        length = len(header.encode()) + random.choice((-1, 1, -8, 8, 2**40, 2**63, 100))
        return (length % 2**64).to_bytes(8, "little") + header.encode() + body
    tree = json.loads(header)
    names = [name for name in tree if name != "__metadata__"]
    one, other = (tree[random.choice(names)] for _ in range(2))
    match random.randrange(4):
        case 0:
            one["data_offsets"], other["data_offsets"] = other["data_offsets"], one["data_offsets"]
        case 1:
            one["data_offsets"] = list(other["data_offsets"])
        case 2:
            shift = random.choice((1, -1, 4, -4, 2**31, 2**62))
            one["data_offsets"] = [max(0, o + shift) for o in one["data_offsets"]]
        case _:
            one["shape"] = random.choice((one["shape"][::-1], [*one["shape"], 1], one["shape"][1:]))
    return joined(json.dumps(tree), body)


def _as_other_numbers(data: bytes, random: Random) -> bytes:
    """A tensor declared as another dtype of the same width, or with its axes in another order."""
    header, body = split(data)
    tree = json.loads(header)
    entry = tree[random.choice([name for name in tree if name != "__metadata__"])]
    same = (
        ("F32", "I32", "U32"), ("F64", "I64", "U64", "C64"), ("F16", "BF16", "I16", "U16"),
        ("U8", "I8", "BOOL", "F8_E4M3", "F8_E5M2"),
    )  # fmt: skip
    entry["dtype"] = random.choice(next(group for group in same if entry["dtype"] in group))
    if random.random() < 0.4:
        random.shuffle(entry["shape"])
    return joined(json.dumps(tree), body)


def _other_numbers(data: bytes, random: Random) -> bytes:
    """Infinities, NaN and huge numbers among the tensors' bytes, at one place or many."""
    header, body = split(data)
    made = bytearray(body)
    for _ in range(random.choice((1, 1, 3, 20))):
        number = random.choice(FLOATS)
        place = random.randrange(max(1, len(made) // 4)) * 4
        made[place : place + len(number)] = number
    return joined(header, bytes(made[: len(body)]))


SAFETENSORS = _Safetensors()
