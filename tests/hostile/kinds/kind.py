"""The interface of a kind of content."""

from __future__ import annotations

from random import Random
from typing import Protocol


class Kind(Protocol):
    """Changes of one kind of content that know its structure."""

    def steps(self, data: bytes) -> int:
        """The number of single changes: each place with each bad value."""

    def step(self, data: bytes, number: int) -> bytes:
        """The content after one of them."""

    def changed(self, data: bytes, random: Random) -> bytes:
        """The content after a random change, which need not be one of the steps."""
