"""Guessing the next tokens from the text's own past: what followed last time may follow again."""

from __future__ import annotations

from collections.abc import Sequence

LENGTHS = (3, 2)  # a longer match is a better guess


class NGrams:
    """Every short run of tokens so far, and where its latest continuation stands."""

    def __init__(self, ids: Sequence[int] = ()) -> None:
        self.ids: list[int] = []
        self._continued: dict[tuple[int, ...], int] = {}
        self.extend(ids)

    def extend(self, ids: Sequence[int]) -> None:
        """Take the tokens that came next."""
        for id in ids:
            for length in LENGTHS:
                if len(self.ids) >= length:
                    self._continued[tuple(self.ids[-length:])] = len(self.ids)
            self.ids.append(id)

    def guess(self, count: int) -> list[int]:
        """Up to ``count`` tokens that may come next; none where nothing repeats."""
        for length in LENGTHS:
            place = self._continued.get(tuple(self.ids[-length:]))
            if place is not None and len(self.ids) >= length:
                return self._following(place, count)
        return []

    def _following(self, place: int, count: int) -> list[int]:
        """What followed from ``place`` on; at the end of the text it goes round again."""
        guess: list[int] = []
        for step in range(place, place + count):
            guess.append(self.ids[step] if step < len(self.ids) else guess[step - len(self.ids)])
        return guess
