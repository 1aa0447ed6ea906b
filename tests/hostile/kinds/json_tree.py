"""Changes of JSON: each node of the tree replaced by each bad value, and what only text can say.

A value that Python's JSON cannot write (a number of 5,000 digits, a name twice, nesting 10,000
deep) is put in as text: the tree holds a mark at its place.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from functools import lru_cache
from random import Random
from typing import Any

Path = tuple[str | int, ...]
MARK = "@@hole@@"

BAD: tuple[str, ...] = (
    "null",
    "true",
    "false",
    "0",
    "-1",
    "1",
    "2",
    "3",
    "7",
    "1.5",
    "-0.0",
    "1e-320",
    "1e308",
    "-1e308",
    "NaN",
    "Infinity",
    "-Infinity",
    "1e999",
    "2147483647",
    "2147483648",
    "4294967296",
    "-4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "1" + "0" * 400,
    "9" * 5000,
    "-" + "9" * 5000,
    '""',
    '"x"',
    '"0"',
    '"\\u0000"',
    '"\\ud800"',
    '"\\udc80a"',
    '"\\u001b[2J"',
    '"../../../../etc/passwd"',
    '"/dev/zero"',
    '"' + "a" * 100_000 + '"',
    '"</script><script>"',
    "[]",
    "{}",
    "[[]]",
    "[null]",
    "[0]",
    "[-1, 1e999]",
    '["x", "x"]',
    '{"x": 1}',
    '{"": {}}',
    '{"a": 1, "a": 2}',
    '{"type": "x"}',
    '{"content": 5}',
    '{"kind": []}',
    "[" * 200 + "]" * 200,
    "[" * 10_000 + "]" * 10_000,
    '{"a":' * 10_000 + "1" + "}" * 10_000,
    "[" + "1," * 20_000 + "1]",
)
"""What a node becomes, as JSON text."""

DELETED = len(BAD)
WRAPPED = DELETED + 1
EACH = WRAPPED + 1  # changes of one node


def paths(tree: Any, here: Path = ()) -> Iterator[Path]:
    """The place of each node, the root's first."""
    yield here
    if not isinstance(tree, dict | list):
        return
    for name, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
        yield from paths(value, (*here, name))


def put(tree: Any, path: Path, value: Any) -> Any:
    """A tree with another value at a path; what does not change is shared."""
    if not path:
        return value
    made = copy.copy(tree)
    made[path[0]] = put(tree[path[0]], path[1:], value)
    return made


def at(tree: Any, path: Path) -> Any:
    for name in path:
        tree = tree[name]
    return tree


def without(tree: Any, path: Path) -> Any:
    if not path:
        return {}
    parent = copy.copy(at(tree, path[:-1]))
    del parent[path[-1]]
    return put(tree, path[:-1], parent)


def with_text(tree: Any, path: Path, text: str) -> str:
    """The tree as JSON, with a text of any kind at a path."""
    return json.dumps(put(tree, path, MARK)).replace(f'"{MARK}"', text, 1)


def tree_step(tree: Any, path: Path, which: int) -> str:
    """A node replaced by a bad value, deleted, or put into a list."""
    if which < DELETED:
        return with_text(tree, path, BAD[which])
    if which == DELETED:
        return json.dumps(without(tree, path))
    return json.dumps(put(tree, path, [at(tree, path)]))


def few_paths(tree: Any, most: int = 400) -> list[Path]:
    """All places of a small tree; of a large one evenly spread ones, the upper levels whole."""
    every = list(paths(tree))
    if len(every) <= most:
        return every
    upper = [path for path in every if len(path) <= 2][: most // 2]
    return upper + every[:: 1 + len(every) // (most // 2)]


def tree_changed(tree: Any, places: list[Path], random: Random) -> str:
    """A random change of a tree."""
    path = random.choice(places)
    way = random.random()
    if way < 0.6:
        return tree_step(tree, path, random.randrange(EACH))
    if way < 0.75:  # a value from another place
        return json.dumps(put(tree, path, at(tree, random.choice(places))))
    if way < 0.85:
        return with_text(tree, path, _other_number(at(tree, path), random))
    held = at(tree, path)
    if isinstance(held, dict) and held:
        name = random.choice(list(held))
        inside = json.dumps(held)[1:-1]
        again = f"{json.dumps(name)}: {random.choice(BAD)}"
        return with_text(tree, path, f"{{{inside}, {again}}}")
    if isinstance(held, list) and held:
        mixed = random.choice((held + held, held[::-1], held[:-1], held * 3, [*held, held]))
        return json.dumps(put(tree, path, mixed))
    return json.dumps(put(tree, path, {str(held)[:20]: held}))


def _other_number(value: Any, random: Random) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        ways = (value + 1, value - 1, -value, value * 2, value // 2 if value else 1, value * 10**6)
        return json.dumps(random.choice(ways))
    if isinstance(value, str):
        ways_of_text = (value + "x", value[:-1], value.upper(), value * 2, value[::-1], " " + value)
        return json.dumps(random.choice(ways_of_text))
    return random.choice(BAD)


@lru_cache(maxsize=512)
def parsed(text: str) -> tuple[Any, list[Path]]:
    tree = json.loads(text)
    return tree, few_paths(tree)


class _Json:
    def steps(self, data: bytes) -> int:
        return len(parsed(data.decode())[1]) * EACH

    def step(self, data: bytes, number: int) -> bytes:
        tree, places = parsed(data.decode())
        return tree_step(tree, places[number // EACH], number % EACH).encode()

    def changed(self, data: bytes, random: Random) -> bytes:
        try:
            tree, places = parsed(data.decode())
        except (ValueError, RecursionError):  # an earlier change broke it
            return data
        return tree_changed(tree, places, random).encode()


class _JsonLines:
    """The first, the middle and the last line of a file, each changed as JSON."""

    def steps(self, data: bytes) -> int:
        return sum(JSON.steps(line) for _, line in self._lines(data))

    def step(self, data: bytes, number: int) -> bytes:
        for place, line in self._lines(data):
            if number < JSON.steps(line):
                return self._put(data, place, JSON.step(line, number))
            number -= JSON.steps(line)
        raise IndexError(number)

    def changed(self, data: bytes, random: Random) -> bytes:
        lines = data.splitlines()
        if not lines:
            return b"{}\n"
        place = random.randrange(len(lines))
        way = random.random()
        if way < 0.1:
            return self._put(
                data, place, random.choice((b"", b"x", lines[-1], b"\xff", b"5", b"[]"))
            )
        if way < 0.2:
            random.shuffle(lines)
            return b"\n".join(lines) + b"\n"
        return self._put(data, place, JSON.changed(lines[place], random))

    def _lines(self, data: bytes) -> list[tuple[int, bytes]]:
        lines = data.splitlines()
        return [(place, lines[place]) for place in sorted({0, len(lines) // 2, len(lines) - 1})]

    def _put(self, data: bytes, place: int, line: bytes) -> bytes:
        lines = data.splitlines()
        lines[place] = line
        return b"\n".join(lines) + b"\n"


JSON = _Json()
JSON_LINES = _JsonLines()
