"""The schema: what a JSON file may hold is what the dataclass says, and nothing else."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clearhead.training.plan import Plan
from clearhead.training.run_folder.lock import Holder
from clearhead.training.run_folder.progress import Facts, LogPosition, Progress
from clearhead.training.run_folder.record import RunRecord
from clearhead.training.run_folder.schema import SchemaError, from_json


@dataclass(frozen=True)
class Inner:
    name: str


@dataclass(frozen=True)
class Outer:
    number: int
    share: float
    flag: bool
    inner: Inner
    pair: tuple[float, int] | None
    names: tuple[str, ...]
    notes: dict[str, int]
    anything: Any


GOOD: dict[str, Any] = {
    "number": 3, "share": 2, "flag": True, "inner": {"name": "a"}, "pair": [0.5, 7],
    "names": ["b", "c"], "notes": {"d": 5}, "anything": [None],
}  # fmt: skip


def test_there_and_back() -> None:
    read = from_json(Outer, GOOD, "file.json")
    assert read == Outer(3, 2.0, True, Inner("a"), (0.5, 7), ("b", "c"), {"d": 5}, [None])
    assert isinstance(read.share, float)
    assert from_json(Outer, GOOD | {"pair": None}, "file.json").pair is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"number": True}, "file.json: number must be a whole number; got True"),
        ({"number": 2.0}, "number must be a whole number; got 2.0"),
        ({"number": 2**70}, "number must be a whole number"),
        ({"number": None}, "number must be a whole number; got None"),
        ({"share": "2"}, "share must be a finite number; got '2'"),
        ({"share": float("nan")}, "share must be a finite number; got nan"),
        ({"share": 10**400}, "share must be a finite number"),
        ({"flag": 1}, "flag must be true or false; got 1"),
        ({"inner": {"name": 3}}, "file.json: inner: name must be text; got 3"),
        ({"inner": []}, "inner must be an object with names"),
        ({"pair": [1.0]}, "pair must have 2 entries; got 1"),
        ({"pair": {}}, "pair must be a list; got {}"),
        ({"names": ["a", 3]}, r"names\[1\] must be text; got 3"),
        ({"notes": {"d": "5"}}, "notes.d must be a whole number; got '5'"),
        ({"notes": 3}, "notes must be an object with names; got 3"),
        ({"colour": 3}, "file.json knows no colour"),
    ],
)
def test_what_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        from_json(Outer, GOOD | changes, "file.json")


def test_names_that_are_missing_and_values_that_are_no_objects() -> None:
    with pytest.raises(SchemaError, match=r"file.json lacks flag, share"):
        from_json(Outer, {n: v for n, v in GOOD.items() if n not in ("flag", "share")}, "file.json")
    with pytest.raises(SchemaError, match=r"file.json must be an object with names; got 3"):
        from_json(Outer, 3, "file.json")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner,
                                                                max_size=3),
    max_leaves=8,
)  # fmt: skip
GOOD_FILES: list[tuple[type, dict[str, Any]]] = [
    (Holder, {"pid": 3, "host": "a"}),
    (Facts, {"progress": vars(Progress(5)), "log": vars(LogPosition(3, "a")), "settings": {}}),
    (RunRecord, {"plan": Plan().to_fields(), "model": {}, "files": {}}),
]


@given(st.data())
def test_every_field_of_every_file_with_any_value(data: st.DataObject) -> None:
    """Each field of each dataclass, nested ones too, becomes something else: read, or our error."""
    kind, good = data.draw(st.sampled_from(GOOD_FILES))
    value = json.loads(json.dumps(good))
    place = value
    name = data.draw(st.sampled_from(sorted(place)))
    if isinstance(place[name], dict) and place[name] and data.draw(st.booleans()):
        place = place[name]
        name = data.draw(st.sampled_from(sorted(place)))
    if data.draw(st.booleans()):
        place[name] = data.draw(VALUES)
    else:
        del place[name]
    try:
        assert isinstance(from_json(kind, value, "file.json"), kind)
    except SchemaError as error:
        assert "file.json" in error.message
