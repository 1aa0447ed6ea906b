"""The token ids that a model reads while it is watched: they label rows and columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from clearhead.errors import ClearheadError
from clearhead.trace.labels import Labels
from clearhead.trace.passage import Passage, passage_of_ids
from clearhead.trace.watching.runs import Runs

_TEXT = ("decoder_input_ids", "target", "input_ids", "ids", "input", "tokens", "x", "tgt")
_SOURCE = ("input_ids", "source", "src")


class InputIds:
    """Token ids of each forward: the text (the decoder's, if there are two stacks), the source."""

    def __init__(self, two_stacks: bool) -> None:
        self._two_stacks = two_stacks
        self._text: dict[int, Tensor] = {}  # by forward
        self._source: dict[int, Tensor] = {}

    def read(self, forward: int, in_encoder: bool, args: tuple[Any, ...], given: Any) -> None:
        """Keep the token ids among a module's arguments, if there are any."""
        if args and isinstance(args[0], Mapping):
            args, given = args[1:], {**args[0], **given}
        first = args[0] if args and _are_ids(args[0]) else None
        if self._two_stacks and in_encoder:
            self._note(self._source, forward, first, _SOURCE, given)
        elif not self._two_stacks:
            self._note(self._text, forward, first, _TEXT, given)
        else:
            second = args[1] if len(args) > 1 and _are_ids(args[1]) else None
            alone = second is None and "input_ids" not in given and "source" not in given
            text = (
                first
                if alone and first is not None and not _first_ids(_TEXT[:2], given)
                else second
            )
            self._note(self._text, forward, text, _TEXT[:2], given)
            self._note(self._source, forward, None if alone else first, _SOURCE, given)

    def _note(
        self,
        where: dict[int, Tensor],
        forward: int,
        ids: Tensor | None,
        names: tuple[str, ...],
        given: Mapping[str, Any],
    ) -> None:
        found = ids if ids is not None else _first_ids(names, given)
        if found is not None:
            where[forward] = found.detach().clone()

    def labels(self, tokenizer: object, runs: Runs) -> Labels | None:
        """The token labels of the latest run; None if they do not fit the records."""
        text = _joined(self._text, runs)
        source = [ids for forward, ids in self._source.items() if forward >= runs.first_forward]
        try:
            labels = Labels(
                _passages(tokenizer, text), _passages(tokenizer, source[0] if source else None)
            )
            for record in runs.records:
                labels.of(record)
        except ClearheadError:
            return None
        return labels


def _are_ids(given: object) -> bool:
    return (
        isinstance(given, Tensor)
        and given.ndim == 2
        and not given.is_floating_point()
        and given.dtype != torch.bool
    )


def _first_ids(names: tuple[str, ...], given: Mapping[str, Any]) -> Tensor | None:
    return next((given[name] for name in names if _are_ids(given.get(name))), None)


def _joined(forwards: dict[int, Tensor], runs: Runs) -> Tensor | None:
    """The ids of a run's forwards, one after the other; beams have their parents' past."""
    parts: list[Tensor] = []
    order: Tensor | None = None
    for forward in sorted(forwards, reverse=True):
        if forward < runs.first_forward:
            break
        ids = forwards[forward]
        parts.append(ids if order is None else ids[order])
        parents = runs.parents_of(forward)
        if parents is not None:
            order = parents if order is None else parents[order]
    if not parts or len({part.shape[0] for part in parts}) != 1:
        return None
    return torch.cat(parts[::-1], dim=1)


def _passages(tokenizer: object, ids: Tensor | None) -> list[Passage]:
    return [] if ids is None else [passage_of_ids(tokenizer, row) for row in ids.tolist()]
