"""Plans: fields that are checked, and values that must stay."""

from __future__ import annotations

import pytest

from clearhead.errors import ConfigError, InputError
from clearhead.training.plan import Plan, check_fields, check_same, sorted_fields

BEGUN = Plan(
    texts=("/a.txt",), size="small", model={"layers": 3}, settings={"steps": 7, "seed": 5},
    fingerprint="f",
)  # fmt: skip


def test_fields_find_their_place() -> None:
    assert sorted_fields({"layers": 3, "clip": 0.5}) == ({"layers": 3}, {"clip": 0.5})
    with pytest.raises(ConfigError, match="has a field colour"):
        sorted_fields({"colour": "red"})


def test_a_misplaced_field_is_sent_to_its_place() -> None:
    check_fields({"layers": 3}, {"clip": 0.5})
    with pytest.raises(ConfigError, match="model has no field clip") as error:
        check_fields({"clip": 0.5}, {})
    assert error.value.hint == "it belongs into settings."
    with pytest.raises(ConfigError, match="settings has no field colour") as error:
        check_fields({}, {"colour": 1})
    assert error.value.hint is not None and "batch_tokens" in error.value.hint


def test_a_plan_survives_json() -> None:
    import json

    assert Plan.from_fields(json.loads(json.dumps(BEGUN.to_fields()))) == BEGUN
    with pytest.raises(InputError, match="not the plan of a run"):
        Plan.from_fields({"colour": "red"})


def test_defaults_ask_for_nothing() -> None:
    check_same(Plan(), BEGUN)
    check_same(Plan(texts=("/a.txt",), size="small", settings={"steps": 7}), BEGUN)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (Plan(texts=("/b.txt",)), "other texts"),
        (Plan(size="base"), "other size: 'small', not 'base'"),
        (Plan(model={"layers": 2}), "other model"),
        (Plan(model={"heads": 2}), "other model"),
        (Plan(settings={"steps": 8}), "other settings"),
    ],
)
def test_other_values_are_refused(asked: Plan, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_same(asked, BEGUN)
