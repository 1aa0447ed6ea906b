"""Plans: fields find their place, and what cannot be is refused."""

from __future__ import annotations

import pytest

from clearhead.errors import ConfigError, InputError
from clearhead.training.plan import Plan, sorted_fields


def test_fields_find_their_place() -> None:
    assert sorted_fields({"layers": 3, "clip": 0.5}) == ({"layers": 3}, {"clip": 0.5})
    with pytest.raises(ConfigError, match="has a field colour"):
        sorted_fields({"colour": "red"})


def test_pairs_come_from_files() -> None:
    with pytest.raises(InputError, match="pairs come from two files"):
        Plan(pairs=True)


def test_a_share_is_held_out() -> None:
    for share in (0.0, 0.6, float("nan")):
        with pytest.raises(InputError, match=r"held_out must be above 0 and at most 0.5"):
            Plan(held_out=share)
