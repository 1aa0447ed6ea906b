from __future__ import annotations

from typing import Any

import pytest

from clearhead.errors import CheckpointError
from clearhead.models.families.field_rules import REQUIRED, FieldRules, Refusal

RULES = FieldRules(
    {"size": REQUIRED, "width": REQUIRED, "bias": False},
    {"author": "a remark"},
    {"experts": Refusal("experts are not known", hint="ask one"), "mode": Refusal("no", ("a",))},
    aliases={"breadth": "width"},
)
SOUND: dict[str, Any] = {"size": 7, "width": 5}


def test_defaults_and_aliases() -> None:
    assert RULES.completed(SOUND) == {"size": 7, "width": 5, "bias": False}
    assert RULES.completed({"size": 7, "breadth": 3})["width"] == 3
    assert RULES.completed({"size": 7, "width": 5, "breadth": 3})["width"] == 3  # the alias wins
    assert RULES.completed(SOUND | {"bias": None})["bias"] is None  # said, and so no default


def test_all_that_is_missing_is_named() -> None:
    with pytest.raises(CheckpointError, match=r"config.json lacks size, width\.\nHint: is it"):
        RULES.completed({"size": None})
    with pytest.raises(CheckpointError, match=r"it lacks a\.size, a\.width"):
        RULES.completed({}, where="it", prefix="a.")


@pytest.mark.parametrize("value", [1, 2.5, True, "x", [], {}, [1, 2], {"a": 1}])
def test_what_is_refused_is_named_with_its_value(value: Any) -> None:
    with pytest.raises(CheckpointError, match=r"config.json: experts is .*: experts are .*\n.*one"):
        RULES.completed(SOUND | {"experts": value})


@pytest.mark.parametrize("value", [None, False, 0, 0.0])
def test_values_that_say_nothing(value: Any) -> None:
    RULES.completed(SOUND | {"experts": value, "mode": "a"})


def test_a_long_value_is_cut() -> None:
    with pytest.raises(CheckpointError) as caught:
        RULES.completed(SOUND | {"experts": "x" * 1_000_000})
    assert len(str(caught.value)) < 200


def test_what_nobody_knows() -> None:
    given = SOUND | {"author": 1, "experts": 2, "breadth": 3, "colour": 4, "tone": 5}
    assert RULES.unread(given) == ("colour", "tone")
    nested = RULES | FieldRules({}, inside=lambda fields: tuple(f"in.{name}" for name in fields))
    assert nested.unread({"colour": 4}) == ("colour", "in.colour")


def test_more_special_rules_win() -> None:
    joined = RULES | FieldRules({"author": None}, {"experts": "always there"})
    assert "author" in joined.read and "author" not in joined.harmless
    assert joined.completed(SOUND | {"experts": 3})["experts"] == 3
    assert joined.aliases == {"breadth": "width"}
