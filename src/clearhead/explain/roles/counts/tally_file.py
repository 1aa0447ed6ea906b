"""A tally as bytes: safetensors with JSON and a checksum, checked from end to end when read.

The bytes may come from a file that was damaged, cut short, or made by somebody else.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields
from typing import Any, get_args

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

from clearhead.errors import CheckpointError, InputError
from clearhead.explain.roles.corpus.sentence import Sentence
from clearhead.explain.roles.counts.tally import SAMPLES, CountedLayer, Tally
from clearhead.explain.roles.properties import Kind, Level
from clearhead.explain.roles.property_index import Entry
from clearhead.files.json_file import parse_json
from clearhead.trace.head_name import parse_name

VERSION = 2
CHECKSUM = "blake2b"  # the tensor that holds it
LARGEST = 2**53  # no count is larger; weights are counted in units of 2⁻³⁰
_WHAT_FAILS = (
    AttributeError, ArithmeticError, LookupError, RecursionError, RuntimeError, SafetensorError,
    TypeError, ValueError,
)  # fmt: skip


def tally_bytes(tally: Tally, about: Mapping[str, object] | None = None) -> bytes:
    """Serialise everything, and what the caller has to say about it."""
    described = {
        "version": VERSION,
        "about": dict(about or {}),
        "entries": [asdict(entry) for entry in tally.index.entries],
        "layers": [asdict(layer) for layer in tally.layers],
        "totals": tally.totals,
        "occurs": tally.occurs,
        "samples": {
            name: [sentence.to_plain() for _, _, sentence in found]
            for name, found in tally.samples.items()
        },
    }
    arrays = {**tally.numbers, "json": np.frombuffer(json.dumps(described).encode(), np.uint8)}
    arrays[CHECKSUM] = checksum_of(arrays)
    return save({name: torch.from_numpy(held.copy()) for name, held in arrays.items()})


def read_tally(data: bytes) -> tuple[Tally, dict[str, object]]:
    """Read what :func:`tally_bytes` wrote, and its ``about``.

    Raises:
        CheckpointError: these are no counts, they were damaged, or they contradict themselves.
    """
    try:
        arrays = {name: tensor.numpy() for name, tensor in load(data).items()}
        if not np.array_equal(arrays.pop(CHECKSUM), checksum_of(arrays)):
            raise ValueError("they were changed after they were written")
        described = parse_json(arrays.pop("json").tobytes())
        if described["version"] != VERSION:
            raise ValueError(f"version {described['version']!r:.20}")
        tally = _tally(arrays, described)
        return tally, dict(described["about"])
    except _WHAT_FAILS as error:
        raise CheckpointError(f"these are no counts of roles: {error!s:.200}.") from None


def checksum_of(arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """The checksum of arrays by name, with their dtypes and shapes."""
    digest = hashlib.blake2b(digest_size=16)
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype} {arrays[name].shape} ".encode())
        digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    return np.frombuffer(digest.digest(), np.uint8)


def _tally(arrays: dict[str, np.ndarray], described: dict[str, Any]) -> Tally:
    tally = Tally()
    for entry in described["entries"]:
        tally.index.enter(_entry(entry))
    if len(tally.index.entries) != len(described["entries"]):
        raise ValueError("a property is listed twice")
    tally.layers = [_layer(layer) for layer in described["layers"]]
    if len({layer.name for layer in tally.layers}) != len(tally.layers):
        raise ValueError("a layer is listed twice")
    tally.totals, tally.occurs = (dict(_counts(described[name])) for name in ("totals", "occurs"))
    for name, found in described["samples"].items():
        if len(found) > SAMPLES:
            raise ValueError("there are too many samples")
        for plain in found:
            tally.add_sample(name, Sentence.from_plain(plain))
    _check_arrays(arrays, tally)
    tally.numbers = {name: held.copy() for name, held in arrays.items()}
    return tally


def _entry(plain: dict[str, Any]) -> Entry:
    entry = Entry(**plain)
    if (
        not isinstance(entry.name, str)
        or entry.level not in get_args(Level)
        or entry.kind not in get_args(Kind)
    ):
        raise ValueError(f"{plain!s:.60} is no property")
    return entry


def _layer(plain: dict[str, Any]) -> CountedLayer:
    layer = CountedLayer(**plain)
    kinds = {"str": str, "int": int, "bool": bool}
    sound = all(type(getattr(layer, f.name)) is kinds[str(f.type)] for f in fields(layer))
    if not sound or not 1 <= layer.heads < 2**16 or not 0 <= layer.value_dim < 2**31:
        raise ValueError(f"{plain!s:.60} is no layer")
    try:
        name, heads = parse_name(layer.name)
    except InputError:
        raise ValueError(f"{layer.name!r:.40} is no layer's name") from None
    if name != layer.name or heads is not None:
        raise ValueError(f"{layer.name!r:.40} is no layer's name")
    return layer


def _counts(plain: dict[str, Any]) -> Iterator[tuple[str, int]]:
    for name, many in plain.items():
        if type(many) is not int or not 0 <= many < LARGEST:
            raise ValueError(f"{name!r:.40} cannot be {many!r:.40}")
        yield name, many


def _check_arrays(arrays: Mapping[str, np.ndarray], tally: Tally) -> None:
    """Refuse arrays of other shapes than counting makes, and counts that cannot be."""
    wanted = Tally(index=tally.index, layers=tally.layers)
    if tally.layers:
        heads = max(layer.heads for layer in tally.layers)
        if len(tally.layers) * heads * len(tally.index.entries) > sum(
            a.size for a in arrays.values()
        ):
            raise ValueError("there are fewer numbers than layers, heads and properties")
        wanted.grow()
    shapes = {name: (held.shape, held.dtype) for name, held in arrays.items()}
    if shapes != {name: (held.shape, held.dtype) for name, held in wanted.numbers.items()}:
        raise ValueError("the numbers do not fit the layers and properties")
    for name, held in arrays.items():
        if held.size and not 0 <= held.min() <= held.max() < LARGEST:
            raise ValueError(f"{name} are negative or too many")
    if arrays and (arrays["hits"] > arrays["counts"][..., None]).any():
        raise ValueError("there are more hits than cases")
    if arrays and (arrays["offsets"] > arrays["counts"][..., None]).any():
        raise ValueError("there are more targets at an offset than cases")
