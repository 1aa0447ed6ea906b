"""Changes in force: the heads whose output an intervention replaces, and the edges that it cuts.

An intervention changes numbers in a forward. What it did must be known where the numbers are
explained: a replaced output came from no word of the text, and a cut edge gave nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias
from weakref import WeakKeyDictionary

from torch import nn

Keys: TypeAlias = Callable[[int, int], Collection[int]]  # of a row, among so many keys


@dataclass(frozen=True, eq=False)
class Change:
    """What one intervention does to one layer."""

    name: str  # of the place: L23H4, L23F
    what: str  # "ablated, zero"
    heads: tuple[int, ...]  # empty: a feed-forward layer
    position: int | None  # the query; None: all of them
    keys: Keys | None = None  # the edges that are cut; None: the whole output is replaced

    def meets(self, head: int, position: int) -> bool:
        """True if it changes what this head puts out at this position."""
        return head in self.heads and self.position in (None, position)


_IN_FORCE: WeakKeyDictionary[nn.Module, list[Change]] = WeakKeyDictionary()


@contextmanager
def in_force(layer: nn.Module, change: Change) -> Iterator[None]:
    """Let a change be known while the block runs."""
    changes = _IN_FORCE.setdefault(layer, [])
    changes.append(change)
    try:
        yield
    finally:
        changes.remove(change)


def changes_of(layer: nn.Module, before: Change | None = None) -> tuple[Change, ...]:
    """The changes of a layer in the order in which they are made; those before one of them."""
    changes = _IN_FORCE.get(layer, [])
    return tuple(changes if before is None else changes[: changes.index(before)])


def replaced_at(changes: Collection[Change], head: int, position: int) -> bool:
    """True if the head's whole output is replaced there."""
    return any(one.keys is None and one.meets(head, position) for one in changes)


class Cuts:
    """The edges that some changes cut in one row of a batch, among so many keys."""

    def __init__(self, changes: Collection[Change], row: int, keys: int) -> None:
        self._cuts = [(one, frozenset(one.keys(row, keys))) for one in changes if one.keys]

    def at(self, head: int, position: int) -> frozenset[int]:
        """The keys from which the head takes nothing at this position."""
        found = [keys for one, keys in self._cuts if one.meets(head, position)]
        return frozenset(key for keys in found for key in keys)
