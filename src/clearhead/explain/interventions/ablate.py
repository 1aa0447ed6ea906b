"""``ablate``: run a model without some of its heads, edges or feed-forward layers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Literal, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from clearhead.arguments import one_of, whole_number
from clearhead.attention.call import Call
from clearhead.attention.observers import OBSERVERS
from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.explain.interventions.changes import (
    Change,
    Cuts,
    changes_of,
    in_force,
    replaced_at,
)
from clearhead.explain.interventions.edges import edge_outputs
from clearhead.explain.interventions.mean_outputs import mean_outputs
from clearhead.explain.interventions.places import Place, places_of
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.models.stack import Stack

Way: TypeAlias = Literal["zero", "mean"]


@contextmanager
def ablate(
    model: Loaded,
    heads: str | Sequence[str],
    *,
    way: Way = "zero",
    source: int | str | None = None,
    query: int | None = None,
    over: str | Sequence[str] | None = None,
) -> Iterator[None]:
    """Take heads, single edges or feed-forward layers away while the block runs.

    Everything behind them is computed anew. After the block the model is as it was.

        >>> import clearhead as ch
        >>> dates = ch.load("dates")
        >>> with ch.ablate(dates, "C0"):  # without cross-attention it cannot read the source
        ...     events = list(ch.generate(dates, "3rd of March 2021", max_tokens=4))
        >>> "".join(event.text for event in events) == "2021"
        False

    Args:
        model: a model of ``ch.load``.
        heads: "L23H4" for a head, "L23" for all heads of a layer, "L23F" for its feed-forward
            layer; or several of these.
        way: "zero" replaces an output by zeros, "mean" by its mean over other texts.
        source: only what the heads take from this source: a text, whose every occurrence is meant,
            or a token's position. The other weights stay as they are.
        query: with a source, only at this position; otherwise at all of them.
        over: the texts of the mean; unless given, the built-in text of ``ch.roles``.

    Yields:
        Nothing: inside the block the model itself is changed.

    Raises:
        InputError: there is no such head or layer; or the options do not go together; or, at the
            end of the block, the model ran and the source was in no text that it read.
    """
    _check(model, way, source, query)
    if over is not None and way != "mean":
        raise InputError("over has the texts of a mean: it is for way='mean'.")
    places = places_of(model, heads)
    if source is not None:
        for place in places:
            if not place.heads:
                raise InputError(f"{place.name}: edges are those of heads; this has no sources.")
        without = _without_edges(model, places, source, query)
    else:
        without = _without_outputs(
            places, mean_outputs(model, places, over) if way == "mean" else None
        )
    with without:
        yield


@contextmanager
def _without_outputs(places: Sequence[Place], means: Sequence[Tensor] | None) -> Iterator[None]:
    with ExitStack() as hooks:
        for number, place in enumerate(places):
            instead = None if means is None else means[number]
            what = "ablated, zero" if means is None else "ablated, mean"
            hooks.enter_context(place.outputs.replaced(place.columns, instead))
            change = Change(place.name, what, place.heads, position=None)
            hooks.enter_context(in_force(place.layer, change))
        yield


@contextmanager
def _without_edges(
    loaded: Loaded, places: Sequence[Place], source: int | str, query: int | None
) -> Iterator[None]:
    """Take weight · v of the source's tokens from the heads' outputs."""
    calls: list[Call] = []
    met: list[bool] = []  # of each change in each forward: whether there was an edge to take away

    def observe(call: Call, _output: Tensor, _logsum: Tensor | None) -> None:
        calls[:] = [call]

    with ExitStack() as hooks:
        hooks.enter_context(OBSERVERS.observed_by(observe))
        for place in places:
            read = hooks.enter_context(_reading(_source_stack(loaded, place)))
            keys = _SourceKeys(loaded, source, read)
            change = Change(place.name, "edges ablated", place.heads, query, keys.of_row)
            hooks.enter_context(in_force(place.layer, change))
            own = hooks.enter_context(_reading(place.stack))
            taken = _edge_change(place, calls, change, own, met)
            hooks.enter_context(place.outputs.changed_by(taken))
        yield
    if met and not any(met):
        raise _nothing_there(source, query)


def _nothing_there(source: int | str, query: int | None) -> InputError:
    """The error of a block in which the model ran, and no edge was there to be taken away."""
    at = "" if query is None else f" that query {query} reads"
    return InputError(
        f"nothing was ablated: the source {source!r} is in no text{at}.",
        hint="give it as the text has it, with its space: ' France'."
        if isinstance(source, str)
        else "positions are those of tokens, from 0.",
    )


def _edge_change(
    place: Place, calls: list[Call], change: Change, read: list[Tensor], met: list[bool]
) -> Callable[[Tensor], None]:
    def subtract(joined: Tensor) -> None:
        call = calls[0]
        if joined.shape[:2] != (call.query.shape[0], call.query.shape[2]):
            raise InputError(
                "edges are ablated in rows without padding.", hint="run the texts one by one."
            )
        queries = call.query.shape[2]
        first = sum(part.shape[1] for part in read) - queries  # the position of the first query
        earlier = changes_of(place.layer, before=change)
        positions = range(first, first + queries)
        for row in range(len(joined)):
            there = change.keys is not None and bool(change.keys(row, call.key.shape[2]))
            met.append(there and (change.position is None or change.position in positions))
            for head, columns in zip(place.heads, place.columns, strict=True):
                edge = _still_there(call, row, head, first, change, earlier)
                joined[row, :, columns] -= edge.to(joined.dtype)

    return subtract


def _still_there(
    call: Call, row: int, head: int, first: int, change: Change, earlier: Sequence[Change]
) -> Float[Tensor, "query value_dim"]:
    """What the head's output still has from the keys that the change cuts."""
    queries = range(first, first + call.query.shape[2])
    before = Cuts(earlier, row, call.key.shape[2])
    own = Cuts([change], row, call.key.shape[2])
    cuts: dict[frozenset[int], list[int]] = {}  # the same keys for most queries
    for number, position in enumerate(queries):
        if not replaced_at(earlier, head, position):
            keys = own.at(head, position) - before.at(head, position)
            cuts.setdefault(keys, []).append(number)
    edge = call.value.new_zeros(len(queries), call.value.shape[-1])
    for keys, numbers in cuts.items():
        if keys:
            edge[numbers] = edge_outputs(call, row, head, sorted(keys))[numbers]
    return edge


class _SourceKeys:
    """The positions of a source among the tokens that a stack has read so far."""

    def __init__(self, loaded: Loaded, source: int | str, read: list[Tensor]) -> None:
        self._read, self._position = read, source if isinstance(source, int) else None
        self._ids: list[int] = []
        if isinstance(source, str):
            if loaded.tokenizer is None:
                raise InputError(
                    f"{loaded.name} came without a tokenizer: give the source as a position."
                )
            self._ids = loaded.tokenizer.encode(source, special=False)
            if not self._ids:
                raise InputError(f"the source {source!r} has no token.")

    def of_row(self, row: int, keys: int) -> list[int]:
        if self._position is not None:
            return [self._position] if self._position < keys else []
        ids = torch.cat([part[row % len(part)] for part in self._read]).tolist()
        width = len(self._ids)
        places = (start for start in range(len(ids)) if ids[start : start + width] == self._ids)
        return sorted(
            {start + step for start in places for step in range(width)} & set(range(keys))
        )


@contextmanager
def _reading(stack: Stack) -> Iterator[list[Int[Tensor, "batch query"]]]:
    """The ids that a stack reads, call after call; a new text begins at position 0."""
    read: list[Tensor] = []

    def keep(_module: nn.Module, args: tuple[Any, ...]) -> None:
        ids, positions = args[0], args[1]
        if int(positions.min()) <= stack.config.position_offset:
            read.clear()
        read.append(ids)

    handle = stack.embedding.register_forward_pre_hook(keep)
    try:
        yield read
    finally:
        handle.remove()


def _source_stack(loaded: Loaded, place: Place) -> Stack:
    """The stack that reads the tokens whose keys the place attends to."""
    if place.attention.crossing:
        assert isinstance(loaded.model, EncoderDecoder)
        return loaded.model.encoder
    return place.stack


def _check(model: object, way: object, source: object, query: object) -> None:
    if not isinstance(model, Loaded):
        raise InputError(
            f"ablate wants a model of ch.load; got {type(model).__name__}.",
            hint="ch.load takes transformers models of a known family as well.",
        )
    one_of("way", way, ("zero", "mean"))
    if source is not None and (isinstance(source, bool) or not isinstance(source, int | str)):
        raise InputError(f"source is a text or a position; got {type(source).__name__}.")
    if source is not None and way == "mean":
        raise InputError("source takes single edges away; way='mean' is for whole outputs.")
    if isinstance(source, int):
        whole_number("source", source, least=0)
    if query is not None:
        whole_number("query", query, least=0)
        if source is None:
            raise InputError("query chooses among edges: it needs a source.")
