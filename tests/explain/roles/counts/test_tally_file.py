from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load, save

from clearhead.errors import CheckpointError
from clearhead.explain.roles.counts.tally import CountedLayer, Tally
from clearhead.explain.roles.counts.tally_file import CHECKSUM, checksum_of, read_tally, tally_bytes
from clearhead.explain.roles.property_index import Entry
from tests.shared.role_models import same, some_sentences


def small() -> Tally:
    """Two properties in two layers of 3 and 5 heads; hits of 1, 2 … in 7 cases."""
    tally = Tally(
        layers=[CountedLayer("L0", 3, True, "layers.0", 5), CountedLayer("L1", 5, True, "x", 5)]
    )
    for name in ("one", "two"):
        tally.index.enter(Entry(name, "words", "content"))
        tally.occurs[name] = 11
    tally.grow()
    tally.numbers["counts"] += 7
    tally.numbers["hits"][:, 0, 0, 0] += range(1, 6)
    tally.count("sentences", 2)
    tally.add_sample("one", some_sentences()[0])
    return tally


def forged(**changes: Any) -> bytes:
    """The bytes with other contents, and a checksum that fits them."""
    arrays = {name: tensor.numpy().copy() for name, tensor in load(tally_bytes(small())).items()}
    del arrays[CHECKSUM]
    described = json.loads(arrays["json"].tobytes())
    for name, value in changes.items():
        if name in arrays:
            arrays[name] = value(arrays[name])
        else:
            described[name] = value(described[name])
    arrays["json"] = np.frombuffer(json.dumps(described).encode(), np.uint8)
    arrays[CHECKSUM] = checksum_of(arrays)
    return save({name: torch.from_numpy(held.copy()) for name, held in arrays.items()})


def test_bytes_hold_everything() -> None:
    tally = small()
    again, about = read_tally(tally_bytes(tally, {"done": 7}))
    assert same(again, tally) and about == {"done": 7}
    assert again.layers == tally.layers and again.samples == tally.samples
    again.numbers["hits"][0, 0, 0, 0, 0] = 3  # counting goes on in them
    assert read_tally(tally_bytes(Tally()))[0].layers == []


def test_what_is_not_counts() -> None:
    with pytest.raises(CheckpointError, match="these are no counts of roles"):
        read_tally(b"rubbish")
    with pytest.raises(CheckpointError, match="these are no counts of roles"):
        read_tally(tally_bytes(small())[:-1])


def test_every_flipped_bit_is_found() -> None:
    data = tally_bytes(small())
    for place in range(0, len(data), 97):
        wrong = bytearray(data)
        wrong[place] ^= 1 << place % 8
        with pytest.raises(CheckpointError, match="these are no counts of roles"):
            read_tally(bytes(wrong))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": lambda _: 1}, "version 1"),
        ({"hits": lambda a: a + 8}, "more hits than cases"),
        ({"offsets": lambda a: a + 8}, "more targets at an offset than cases"),
        ({"mass": lambda a: a - 1}, "mass are negative or too many"),
        ({"kept": lambda a: a + 2**60}, "kept are negative or too many"),
        ({"even": lambda a: a[:1]}, "the numbers do not fit"),
        ({"alike": lambda a: a.astype(np.int32)}, "the numbers do not fit"),
        ({"layers": lambda v: v + v}, "a layer is listed twice"),
        ({"layers": lambda v: v[:1]}, "the numbers do not fit"),
        ({"layers": lambda v: [v[0] | {"heads": 2**15}, v[1]]}, "there are fewer numbers than"),
        ({"layers": lambda v: [v[0] | {"heads": 0}, v[1]]}, "is no layer"),
        ({"layers": lambda v: [v[0] | {"causal": 1}, v[1]]}, "is no layer"),
        ({"layers": lambda v: [v[0] | {"name": "L0H1"}, v[1]]}, "is no layer's name"),
        ({"layers": lambda v: [v[0] | {"name": "../x"}, v[1]]}, "is no layer's name"),
        ({"entries": lambda v: v + v}, "a property is listed twice"),
        ({"entries": lambda v: [v[0] | {"kind": "odd"}, v[1]]}, "is no property"),
        ({"totals": lambda v: v | {"tokens": -1}}, "'tokens' cannot be -1"),
        ({"totals": lambda v: v | {"tokens": "many"}}, "'tokens' cannot be 'many'"),
        ({"occurs": lambda v: v | {"one": 1.5}}, "'one' cannot be 1.5"),
        ({"samples": lambda v: {"one": v["one"] * 13}}, "there are too many samples"),
        ({"samples": lambda v: {"one": [5]}}, "these are no counts of roles"),
        ({"about": lambda v: 7}, "these are no counts of roles"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_counts_that_cannot_be(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        read_tally(forged(**changes))


def test_a_forgery_without_changes_is_read() -> None:
    assert same(read_tally(forged())[0], small())
