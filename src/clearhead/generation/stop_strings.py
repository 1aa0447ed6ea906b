"""Stop strings: text that could still become one is held back, whatever tokens it comes in."""

from __future__ import annotations

from collections.abc import Sequence

from clearhead.errors import InputError


class StopStrings:
    """Takes a text piece by piece and gives it on, up to the first stop string in it."""

    def __init__(self, stops: Sequence[str] = ()) -> None:
        self.stops = tuple(stops)
        self.found: str | None = None
        self._held = ""

    def push(self, piece: str) -> str:
        """Take more text; return what certainly comes before any stop string."""
        if self.found is not None:
            return ""
        text = self._held + piece
        places = [(text.find(stop), stop) for stop in self.stops if stop in text]
        if places:
            place, self.found = min(places, key=lambda found: (found[0], -len(found[1])))
            self._held = ""
            return text[:place]
        kept = len(text) - max((_overlap(text, stop) for stop in self.stops), default=0)
        self._held = text[kept:]
        return text[:kept]

    def flush(self) -> str:
        """What was held back and did not become a stop string after all."""
        rest, self._held = self._held, ""
        return rest


def checked_stops(stop: object) -> tuple[str, ...]:
    """``stop`` as strings: one, or several."""
    stops = (stop,) if isinstance(stop, str) else stop
    if not isinstance(stops, Sequence | set | frozenset) or not all(
        isinstance(one, str) and one for one in stops
    ):
        raise InputError(
            f"stop must be a string or several, none of them empty; got {stop!r}.",
            hint="tokens that end a text are the model's own (config.eos).",
        )
    return tuple(stops)


def _overlap(text: str, stop: str) -> int:
    """How many characters at the end of ``text`` could be the beginning of ``stop``."""
    longest = min(len(text), len(stop) - 1)
    return next((n for n in range(longest, 0, -1) if text.endswith(stop[:n])), 0)
