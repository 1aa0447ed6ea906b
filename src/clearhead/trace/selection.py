"""Selecting rows and columns: by index, slice, range, list, or the text of a token."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import SupportsIndex, TypeAlias

import torch
from torch import Tensor

from clearhead.arguments import several, shown
from clearhead.errors import InputError
from clearhead.trace.exact import Positions
from clearhead.trace.passage import Passage

Selection: TypeAlias = int | str | slice | range | Sequence[int | str] | Tensor | None
LISTED = 12  # positions that an error names


@dataclass(frozen=True)
class Axis:
    """The rows or the columns of a head: how many, and their tokens where they are known."""

    name: str  # "row" or "column"
    length: int
    passage: Passage | None = None  # with as many tokens as the axis is long

    def places(self, chosen: Selection) -> Positions:
        """The chosen positions; None chooses all."""
        if chosen is None:
            return Positions(range(self.length))
        if isinstance(chosen, slice):
            return _of_range(range(self.length)[self._checked(chosen)])
        if isinstance(chosen, range):
            for end in (chosen[0], chosen[-1]) if chosen else ():
                self.position(end)
            if chosen.step == 1 and 0 <= chosen.start <= chosen.stop <= self.length:
                return Positions(chosen)
            return self._listed(list(chosen))
        if isinstance(chosen, (str, SupportsIndex)) and not _is_list(chosen):
            position = self.position(chosen)
            return Positions(range(position, position + 1))
        return self._listed(_as_list(self.name, chosen))

    def run(self, chosen: slice | range | None) -> range:
        """Consecutive positions, as a map needs them; None chooses all."""
        places = self.places(chosen)
        if places.index is not None or len(places) == 0:
            raise InputError(
                f"a map wants consecutive {self.name}s, at least one; got {shown(chosen)} of "
                f"{self.length}."
            )
        return places.run

    def position(self, chosen: object) -> int:
        """One position, by index (negative from the end) or by the text of its token."""
        if isinstance(chosen, str):
            return self._named(chosen)
        index = None
        if not isinstance(chosen, bool) and isinstance(chosen, SupportsIndex):
            with suppress(TypeError, ValueError, RuntimeError):  # a tensor of floats, of several …
                index = operator.index(chosen)
        if index is None:
            raise InputError(
                f"a {self.name} is chosen by its index or its token's text; {shown(chosen)} "
                f"({type(chosen).__name__}) came."
            )
        if not -self.length <= index < self.length:
            raise InputError(
                f"{self.name} {index} is out of range: there are {self.length} {self.name}s, "
                f"0 … {self.length - 1} (or −1 … −{self.length} from the end)."
            )
        return index % self.length

    def _checked(self, chosen: slice) -> slice:
        ends = (chosen.start, chosen.stop, chosen.step)
        if chosen.step == 0 or not all(isinstance(end, int | None) for end in ends):
            raise InputError(
                f"{self.name}s are cut by whole numbers, in steps other than 0; {shown(chosen)} "
                "came."
            )
        return chosen

    def _listed(self, chosen: list[object]) -> Positions:
        return Positions.at(torch.tensor([self.position(one) for one in chosen], dtype=torch.long))

    def _named(self, word: str) -> int:
        if self.passage is None:
            raise InputError(
                f"{self.name} {word!r}: the tokens of this trace are not known.",
                hint="seen.label(tokenizer, text) names them; indices always work.",
            )
        places = self.passage.positions(word)
        if not places:
            raise InputError(f"no {self.name} reads {word!r}.", hint=self._some_tokens())
        if len(places) > 1:
            raise InputError(
                f"{word!r} occurs {len(places)} times among the {self.name}s: at "
                f"{_listed([place[0] for place in places])}; give one of these indices."
            )
        if len(places[0]) > 1:
            pieces = [self.passage.tokens[i].text for i in places[0]]
            raise InputError(
                f"{word!r} is {len(pieces)} tokens: {_listed(places[0])} ({pieces}).",
                hint="choose one of them by index, or merge tokens to words with .words().",
            )
        return places[0][0]

    def _some_tokens(self) -> str:
        assert self.passage is not None
        return f"its tokens are {_listed([token.text for token in self.passage.tokens])}."


def _of_range(run: range) -> Positions:
    return (
        Positions(run) if run.step == 1 else Positions.at(torch.tensor(list(run), dtype=torch.long))
    )


def is_single(chosen: Selection) -> bool:
    """True if a selection names one position; its axis is then dropped."""
    return isinstance(chosen, (str, SupportsIndex)) and not _is_list(chosen)


def _is_list(chosen: object) -> bool:
    return getattr(chosen, "ndim", 0) > 0  # arrays and tensors claim to be indices, too


def _as_list(name: str, chosen: object) -> list[object]:
    try:
        if isinstance(chosen, Tensor):
            chosen = chosen.tolist()
        return several(f"{name}s", chosen, "indices or token texts")
    except (InputError, RuntimeError):  # also a tensor without numbers
        raise InputError(
            f"{name}s are chosen by index, slice, range, list or token text; "
            f"{type(chosen).__name__} came."
        ) from None


def _listed(items: Sequence[object]) -> str:
    shown = ", ".join(str(item) if isinstance(item, int) else repr(item) for item in items[:LISTED])
    return shown + (", …" if len(items) > LISTED else "")
