"""The layers and heads that are kept: the arguments ``layers`` and ``heads`` of ``watch``."""

from __future__ import annotations

import re
from collections.abc import Iterable

from clearhead.arguments import several, shown
from clearhead.errors import InputError

_HEAD = re.compile(r"([A-Z]\d+)H(\d+)")


class LayerFilter:
    """Layers by number (16, which also is E16, C16 and V16), name ("L16") or module path; heads by
    number (of every layer) or name ("L16H5")."""

    def __init__(
        self,
        layers: int | str | Iterable[int | str] | None,
        heads: int | str | Iterable[int | str] | None,
    ) -> None:
        self._layers = None if layers is None else set(_listed("layers", layers))
        self._heads: set[int] | None = None
        self._named: dict[str, set[int]] = {}
        for head in [] if heads is None else _listed("heads", heads):
            if isinstance(head, int):
                self._heads = (self._heads or set()) | {head}
                continue
            match = _HEAD.fullmatch(head)
            if match is None:
                raise InputError(f'heads are numbers or names such as "L16H5"; got {head!r}.')
            self._named.setdefault(match[1], set()).add(int(match[2]))

    def keeps(self, name: str, path: str) -> bool:
        """True if a layer is to be kept."""
        if self._layers is not None:
            return bool(self._layers & {name, path, int(name[1:])})
        return not self._named or self._heads is not None or name in self._named

    def heads_of(self, name: str, count: int) -> list[int] | None:
        """The numbers of a layer's heads that are to be kept; None for all."""
        chosen = self._named.get(name, set()) | (self._heads or set())
        if not chosen:
            return None
        beyond = sorted(head for head in chosen if not 0 <= head < count)
        if beyond:
            raise InputError(f"{name}H{beyond[0]}: this layer has {count} heads, 0 … {count - 1}.")
        return sorted(chosen)

    def missing(self, names: Iterable[str], paths: Iterable[str]) -> list[str]:
        """The layers that were asked for and are not among these."""
        names = set(names)
        there = names | set(paths) | {int(name[1:]) for name in names}
        asked = (self._layers or set()) | set(self._named)
        return sorted(str(layer) for layer in asked if layer not in there)


def _listed(name: str, given: int | str | Iterable[int | str]) -> list[int | str]:
    items: list[int | str] = (
        [given]
        if isinstance(given, int | str)
        else several(name, given, 'numbers or names such as "L16"')
    )
    for item in items:
        if isinstance(item, bool) or not isinstance(item, int | str):
            raise InputError(f'{name} are numbers or names such as "L16"; got {shown(item)}.')
        if isinstance(item, int) and item < 0:
            raise InputError(f"{name} count from 0; got {item}.")
    if not items:
        raise InputError(f"{name} is empty: nothing would be kept.", hint=f"leave {name} out.")
    return items
