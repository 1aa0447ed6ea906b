"""Short names for layers: ``L16``; beside other stacks ``E3``, ``C3``, ``V3`` and ``A3``.

A layer is a module. Its name follows from the modules of the model alone: not from what ran before,
how often, or what is kept.
"""

from __future__ import annotations

import re

from torch import nn

from clearhead.trace.watching.module_stack import looks_cross

_TOWERS = {"V": re.compile(r"vision|visual|image|pixel"), "A": re.compile(r"audio|speech")}


class LayerNames:
    """L: the decoder, the text, or the only stack. E: the encoder beside a decoder. V, A: the tower
    for images or sound beside another one. C: cross-attention.

    The number is the layer's own in the module path where paths of a kind differ in one number
    only; otherwise layers of a kind are counted in the order of the modules. A layer that is called
    again in the same forward is L(number + count), where count is how many the kind has: a stack of
    3 that runs twice is L0 … L5, in order.
    """

    def __init__(self, attention: dict[str, nn.Module]) -> None:
        paths = list(attention)
        self.two_stacks = _in_two_stacks(paths)
        towers = {_tower(path) for path in paths}
        self._towers = towers if len(towers) > 1 else {""}
        kinds: dict[str, list[str]] = {}
        for path, module in attention.items():
            kinds.setdefault(self._letter(path, looks_cross(path, module)), []).append(path)
        self._numbers = {path: n for paths in kinds.values() for path, n in _numbered(paths)}
        self._counts = {
            path: 1 + max(self._numbers[other] for other in paths)
            for paths in kinds.values()
            for path in paths
        }
        self._given: dict[tuple[str, int], str] = {}

    def name(self, path: str, cross: bool, occurrence: int) -> str:
        """The name of a module's n-th call within one forward, n counted from 0."""
        known = self._given.get((path, occurrence))
        if known is not None:
            return known
        letter, taken = self._letter(path, cross), set(self._given.values())
        number = self._numbers.get(path, _own_number(path))
        count = self._counts.get(path, 1)
        number += occurrence * count
        while f"{letter}{number}" in taken:
            number += count
        self._given[path, occurrence] = f"{letter}{number}"
        return self._given[path, occurrence]

    def known(self) -> list[str]:
        """The names that were given, in order."""
        return list(self._given.values())

    def in_encoder(self, path: str) -> bool:
        """Whether a module belongs to the encoder of an encoder-decoder."""
        return self.two_stacks and _side(path) == "encoder"

    def _letter(self, path: str, cross: bool) -> str:
        if cross:
            return "C"
        tower = _tower(path)
        if tower and tower in self._towers:
            return tower
        return "E" if self.in_encoder(path) else "L"


def _tower(path: str) -> str:
    """Which of several towers a path belongs to: its first part that names one; "" for text."""
    for part in path.lower().split("."):
        for letter, named in _TOWERS.items():
            if named.search(part):
                return letter
    return ""


def _side(path: str) -> str:
    """Which of the two stacks a path belongs to: its first part that names one."""
    for part in path.lower().split("."):
        if "decoder" in part:
            return "decoder"
        if "encoder" in part:
            return "encoder"
    return ""


def _in_two_stacks(paths: list[str]) -> bool:
    return {"encoder", "decoder"} <= {_side(path) for path in paths}


def _numbered(paths: list[str]) -> list[tuple[str, int]]:
    split = [path.split(".") for path in paths]
    if len({tuple(p for p in parts if not p.isdigit()) for parts in split}) == 1:
        numbers = [[int(part) for part in parts if part.isdigit()] for parts in split]
        if len({len(row) for row in numbers}) == 1 and numbers[0]:
            columns = list(zip(*numbers, strict=True))
            differing = [column for column in columns if len(set(column)) == len(column)]
            constant = [column for column in columns if len(set(column)) == 1]
            if differing and len(constant) >= len(columns) - 1:
                return list(zip(paths, differing[0], strict=True))
    return [(path, number) for number, path in enumerate(paths)]


def _own_number(path: str) -> int:
    numbers = [int(part) for part in path.split(".") if part.isdigit()]
    return numbers[0] if len(numbers) == 1 else 0
