"""Checks of a trace file's contents: every shape and number, before any of it is used."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from clearhead.text.token import Token
from clearhead.trace.passage import Passage
from clearhead.trace.proving.probes import PROBES
from clearhead.trace.record import LayerFacts, LayerRecord
from clearhead.trace.row_rules import RowBias, RowMask, RowRules

DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16)
}
FLOATS = tuple(DTYPES.values())
MASK_PARTS = ("low", "high", "real", "whole", "dense")
BIAS_PARTS = ("numbers", "diagonals", "without")
Get: TypeAlias = Callable[[str], Tensor | None]
LARGEST = 2**31  # no count of tokens or heads is larger
_LAYER_NAME = re.compile(r"[A-Z](0|[1-9][0-9]{0,5})")


class TraceFaultError(Exception):
    """What is wrong with a trace; the reader adds which file it is about."""


def field(entry: object, name: str, kind: type[Any]) -> Any:
    """A field of a JSON object, of the wanted kind (a bool is no number)."""
    if not isinstance(entry, dict):
        raise TraceFaultError(f"wanted a JSON object with {name!r}, got {type(entry).__name__}")
    value: Any = entry.get(name)
    if kind is float and type(value) is int:
        value = float(value) if abs(value) < LARGEST else None
    if type(value) is not kind:
        raise TraceFaultError(f"{name!r} should be {kind.__name__}, and is {str(value)[:40]!r}")
    if kind is int and abs(value) >= LARGEST:
        raise TraceFaultError(f"{name!r} is an impossible number")
    return value


def checked_layer(number: int, entry: object, get: Get) -> LayerRecord:
    """One layer, with every shape and number checked against the others."""
    facts = _facts(entry)
    where = f"layer {facts.name} (number {number})"
    query, key, logsum = (_needed(where, name, get(name)) for name in ("query", "key", "logsum"))
    batch, heads, rows, _ = _axes(where, "query", query)
    _, shared, keys, _ = _axes(where, "key", key)
    if shared < 1 or heads < 1 or heads % shared:
        raise TraceFaultError(f"{where}: {heads} heads cannot share {shared} key heads")
    value, output, sinks = get("value"), get("output"), get("sinks")
    values = _value_heads(where, heads, shared, value, get("value_probe"))
    probes = (get("value_probe"), get("output_probe"))
    for name, tensor, axes in (
        ("query", query, (batch, heads, rows, facts.key_dim)),
        ("key", key, (batch, shared, keys, facts.key_dim)),
        ("logsum", logsum, (batch, heads, rows)),
        ("value", value, (batch, values, keys, facts.value_dim)),
        ("output", output, (batch, heads, rows, facts.value_dim)),
        ("value_probe", probes[0], (batch, values, keys, PROBES)),
        ("output_probe", probes[1], (batch, heads, rows, PROBES)),
        ("sinks", sinks, (heads,)),
    ):
        if tensor is not None:
            _fits(where, name, tensor, FLOATS, axes, repeated=0)
    pieces = [
        _piece(where, index, listed, get, (batch, heads, keys))
        for index, listed in enumerate(field(entry, "pieces", list))
    ]
    if sum(piece.rows for piece in pieces) != rows:
        raise TraceFaultError(f"{where}: its rules do not cover its {rows} rows")
    return LayerRecord(
        facts, query, key, logsum, value=value, output=output, sinks=sinks, pieces=pieces,
        head_numbers=_head_numbers(where, entry, heads, facts.heads),
        value_probe=probes[0], output_probe=probes[1],
    )  # fmt: skip


def _value_heads(where: str, heads: int, shared: int, *parts: Tensor | None) -> int:
    """How many heads the values have: most often as many as the keys."""
    counts = {part.shape[1] for part in parts if part is not None and part.ndim == 4}
    if not counts:
        return shared
    if len(counts) > 1 or min(counts) < 1 or heads % min(counts):
        raise TraceFaultError(f"{where}: {heads} heads cannot share {sorted(counts)} value heads")
    return counts.pop()


def checked_passage(entry: object) -> Passage:
    """A text with its tokens."""
    text, tokens = field(entry, "text", str), []
    for listed in field(entry, "tokens", list):
        kinds = (int, str, int, int, bool)
        if not isinstance(listed, list) or tuple(map(type, listed)) != kinds:
            raise TraceFaultError(
                f"a token should be [id, text, start, end, special]: {str(listed)[:60]}"
            )
        token = Token(*listed)
        if not 0 <= token.start <= token.end <= len(text):
            raise TraceFaultError(f"the token {token.text[:20]!r} lies outside of its text")
        tokens.append(token)
    return Passage(text, tuple(tokens))


def _facts(entry: object) -> LayerFacts:
    name, kind, dtype = (field(entry, name, str) for name in ("name", "kind", "dtype"))
    if not _LAYER_NAME.fullmatch(name):
        raise TraceFaultError(f"{name[:20]!r} is no name of a layer")
    if kind not in ("self", "cross") or dtype not in DTYPES:
        raise TraceFaultError(f"layer {name}: unknown kind {kind[:20]!r} or dtype {dtype[:20]!r}")
    kinds: dict[str, Literal["self", "cross"]] = {"self": "self", "cross": "cross"}
    counts = {n: field(entry, n, int) for n in ("heads", "kv_heads", "key_dim", "value_dim")}
    scale = field(entry, "scale", float)
    capped = isinstance(entry, dict) and entry.get("softcap") is not None
    softcap = field(entry, "softcap", float) if capped else None
    finite = all(math.isfinite(n) for n in (scale, softcap or 1.0))
    if min(counts.values()) < 0 or not finite or (softcap is not None and softcap <= 0):
        raise TraceFaultError(f"layer {name}: impossible counts, scale or softcap")
    return LayerFacts(
        name=name, path=field(entry, "path", str), kind=kinds[kind], **counts,
        causal=field(entry, "causal", bool), scale=scale, softcap=softcap, dtype=DTYPES[dtype],
        note=field(entry, "note", str),
    )  # fmt: skip


def _head_numbers(where: str, entry: object, heads: int, of_model: int) -> tuple[int, ...]:
    numbers = field(entry, "head_numbers", list)
    sound = all(type(number) is int and 0 <= number < of_model for number in numbers)
    if not sound or len(set(numbers)) != len(numbers) or len(numbers) != heads:
        raise TraceFaultError(f"{where}: head_numbers do not number its {heads} heads")
    return tuple(numbers)


def _piece(
    where: str, index: int, entry: object, get: Get, sizes: tuple[int, int, int]
) -> RowRules:
    batch, heads, all_keys = sizes
    rows, keys = field(entry, "rows", int), field(entry, "keys", int)
    if rows < 1 or not 0 <= keys <= all_keys:
        raise TraceFaultError(f"{where}: a rule of {rows} rows over {keys} keys")
    axes = (batch, heads, rows, keys)
    mask = bias = None
    if field(entry, "masked", bool):
        mask = _mask(where, {part: get(f"{index}.mask.{part}") for part in MASK_PARTS}, axes)
    if isinstance(entry, dict) and entry.get("origin") is not None:
        parts = {part: get(f"{index}.bias.{part}") for part in BIAS_PARTS}
        bias = _bias(where, parts, axes, field(entry, "origin", int))
    return RowRules(rows, keys, mask, bias)


def _mask(where: str, parts: dict[str, Tensor | None], axes: tuple[int, int, int, int]) -> RowMask:
    batch, _, rows, keys = axes
    flags: tuple[torch.dtype, ...] = (torch.bool,)
    low, high = (_needed(where, name, parts.pop(name)) for name in ("low", "high"))
    for name, tensor in (("low", low), ("high", high)):
        _fits(where, name, tensor, (torch.int64, torch.int32), (batch, rows), repeated=1)
    wanted = {"real": (batch, keys), "whole": (batch, rows), "dense": axes}
    for name, given in parts.items():
        if given is not None:
            _fits(where, name, given, flags, wanted[name], repeated=2 if name == "dense" else 1)
    return RowMask(low, high, **parts)


def _bias(
    where: str, parts: dict[str, Tensor | None], axes: tuple[int, int, int, int], origin: int
) -> RowBias:
    numbers, diagonals = parts["numbers"], parts["diagonals"]
    if (numbers is None) == (diagonals is None):
        raise TraceFaultError(f"{where}: a bias is numbers or diagonals, one of them")
    if numbers is not None:
        _fits(where, "numbers", numbers, FLOATS, axes, repeated=4)
    if diagonals is not None:
        distances = max(1, diagonals.shape[-1]) if diagonals.ndim else 1
        _fits(where, "diagonals", diagonals, FLOATS, (*axes[:2], distances), repeated=2)
    without = parts["without"]
    if without is not None:
        _fits(where, "without", without, (torch.bool,), (axes[0], axes[2]), repeated=1)
    return RowBias(numbers, diagonals, origin, without)


def _fits(
    where: str,
    name: str,
    tensor: Tensor,
    kinds: tuple[torch.dtype, ...],
    axes: tuple[int, ...],
    repeated: int,
) -> None:
    """A dtype of these kinds, and these axes; the first ``repeated`` of them may be 1 instead."""
    sizes = tuple(tensor.shape)
    fits = len(sizes) == len(axes) and all(
        size == axis or (size == 1 and place < repeated)
        for place, (size, axis) in enumerate(zip(sizes, axes, strict=True))
    )
    if not fits or tensor.dtype not in kinds:
        raise TraceFaultError(f"{where}: {name} is {tensor.dtype} of {sizes}; wanted {axes}")


def _needed(where: str, name: str, tensor: Tensor | None) -> Tensor:
    if tensor is None:
        raise TraceFaultError(f"{where}: its {name} is missing")
    return tensor


def _axes(where: str, name: str, tensor: Tensor) -> tuple[int, int, int, int]:
    if tensor.ndim != 4 or tensor.shape[0] < 1 or tensor.shape[2] < 1:
        raise TraceFaultError(f"{where}: {name} has the impossible shape {tuple(tensor.shape)}")
    batch, heads, positions, width = tensor.shape
    return batch, heads, positions, width
