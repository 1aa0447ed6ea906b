"""Endless passes through the data: each is made anew, and goes to its own end."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import torch

Item = TypeVar("Item")


class Passes(Generic[Item]):
    """The items of all passes, by number; ``make(turn)`` gives those of one pass.

    >>> passes = Passes(lambda turn: [f"{turn}{letter}" for letter in "ab"[: turn + 1]])
    >>> [passes.item(number) for number in (0, 1, 2, 3)]
    ['0a', '1a', '1b', '2a']
    """

    def __init__(self, make: Callable[[int], Sequence[Item]]) -> None:
        self._make = make
        self._pass: tuple[int, Sequence[Item]] = (0, make(0))
        self._ends = [len(self._pass[1])]  # of each pass so far: the number of the next item
        self.first = self._ends[0]  # items of the first pass

    def item(self, number: int) -> Item:
        """Item ``number``, counted from 0 over all passes."""
        while self._ends[-1] <= number:
            self._ends.append(self._ends[-1] + len(self._of(len(self._ends))))
        turn = bisect_right(self._ends, number)
        return self._of(turn)[number - (self._ends[turn - 1] if turn else 0)]

    def _of(self, turn: int) -> Sequence[Item]:
        if self._pass[0] != turn:
            self._pass = (turn, self._make(turn))
        return self._pass[1]


def shuffled(items: Sequence[Item], generator: torch.Generator) -> list[Item]:
    """The items in a random order."""
    return [items[i] for i in torch.randperm(len(items), generator=generator).tolist()]


def rectangle(rows: Sequence[Sequence[int]], filling: int) -> torch.Tensor:
    """Rows of different lengths as one tensor.

    >>> rectangle([[3, 5], [7]], 0).tolist()
    [[3, 5], [7, 0]]
    """
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[filling] * (longest - len(row))] for row in rows])
