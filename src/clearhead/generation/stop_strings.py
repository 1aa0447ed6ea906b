"""Stop strings: text that could become one is held back, wherever the token borders are."""

from __future__ import annotations

from collections.abc import Sequence

from clearhead.arguments import shown
from clearhead.errors import InputError


class StopStrings:
    """Takes a text in pieces and returns it, up to the first stop string in it.

    ``found`` is the stop string that ended the text, or None.
    """

    def __init__(self, stops: Sequence[str] = ()) -> None:
        self.stops = tuple(stops)
        self.found: str | None = None
        self._pending = ""

    def push(self, piece: str) -> str:
        """Add text; return the part that certainly comes before any stop string."""
        if self.found is not None:
            return ""
        text = self._pending + piece
        matches = [(text.find(stop), stop) for stop in self.stops if stop in text]
        if matches:
            start, self.found = min(matches, key=lambda match: (match[0], -len(match[1])))
            self._pending = ""
            return text[:start]
        end = len(text) - max((_overlap(text, stop) for stop in self.stops), default=0)
        self._pending = text[end:]
        return text[:end]

    def flush(self) -> str:
        """Return the text that was held back and did not become a stop string."""
        rest, self._pending = self._pending, ""
        return rest


def checked_stops(stop: object) -> tuple[str, ...]:
    """Return ``stop``, one string or several, as a tuple; raise an InputError for all else."""
    stops = (stop,) if isinstance(stop, str) else stop
    if not isinstance(stops, Sequence | set | frozenset) or not all(
        isinstance(one, str) and one for one in stops
    ):
        raise InputError(
            f"stop must be a string or several, none of them empty; got {shown(stop)}.",
            hint="tokens that end a text are the model's own (config.eos).",
        )
    return tuple(stops)


def _overlap(text: str, stop: str) -> int:
    """Return the length of the longest end of ``text`` that is a beginning of ``stop``."""
    longest = min(len(text), len(stop) - 1)
    return next((n for n in range(longest, 0, -1) if text.endswith(stop[:n])), 0)
