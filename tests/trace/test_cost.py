from __future__ import annotations

import pytest

from clearhead.errors import InputError
from clearhead.trace import cost
from clearhead.trace.cost import WORK_BYTES, Cost, Limit, check_limit, cost_of


@pytest.fixture
def known_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second for 1,000 multiplications, and one for 10 numbers."""
    monkeypatch.setattr(cost, "_speed", lambda: (0.001, 0.1))


def test_seconds_by_hand(known_speed: None) -> None:
    found = cost_of(100, 7, 13)
    assert (found.bytes, found.weights) == (13 + WORK_BYTES, 100)
    assert found.seconds == pytest.approx(0.7 + 10.0)
    assert cost_of(100, 7, 13, passes=2).seconds == pytest.approx(0.7 + 20.0)


def test_a_cost_reads_as_one_line() -> None:
    assert str(Cost(34_000_000, 0.256, 12_345)) == "34 MB, about 0.26 s (12,345 weights)"


def test_the_limit_names_what_is_too_much(known_speed: None) -> None:
    small = Limit(bytes=WORK_BYTES + 5, seconds=1.0)
    check_limit("map of L0H0", 1, 7, 5, small)
    with pytest.raises(InputError, match=r"map of L0H0 would take .*the limit is 32 MB and 1 s"):
        check_limit("map of L0H0", 1, 7, 6, small)
    with pytest.raises(InputError, match=r"about 11 s \(100 weights\)"):
        check_limit("map of L0H0", 100, 7, 5, small)
    check_limit("map of L0H0", 100, 7, 6, None)


def test_little_work_needs_no_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "_speed", lambda: pytest.fail("a trial was run"))
    check_limit("row", 1000, 64, 4000, Limit())


def test_the_trial_measures_something() -> None:
    by_product, by_number = cost._speed()
    assert 0 < by_product < by_number
