"""Every public function with bad values for every argument: it works, or says what is wrong.

The whole walk is ``python -m tests.interface``. Here a part of it runs, another part of the values
for each argument, so that every argument and every value is tried.
"""

from __future__ import annotations

import pytest

from tests.interface.__main__ import summary
from tests.interface.accepted import read_accepted, unlisted
from tests.interface.calls import CALLS
from tests.interface.surface import parameters, surface
from tests.interface.walk import GOOD, Case, cases, confined, function_of, outcome

EVERY = 23  # one of so many cases is tried here
pytestmark = pytest.mark.usefixtures("unchecked", "one_thread")


def some_cases(name: str) -> list[Case]:
    return [case for number, case in enumerate(cases([name])) if number % EVERY == 0]


@pytest.mark.parametrize("name", sorted(CALLS))
def test_a_bad_value_is_refused_by_name(name: str) -> None:
    with confined():
        outcomes = [outcome(case) for case in some_cases(name)]
    faults = [*unlisted(outcomes), *(one for one in outcomes if one.kind not in GOOD)]
    assert not faults, "\n".join(["python -m tests.interface tells more", *summary(faults)])


def test_every_public_name_has_a_valid_call() -> None:
    called = {function_of(name) for name in CALLS}
    assert sorted(set(surface()) - called) == [], "new public names: give them a call in calls.py"
    assert sorted(called - set(surface())) == [], "no longer public: remove them from calls.py"


def test_every_argument_is_on_the_list() -> None:
    """A new argument is walked over at once; what it accepts has to be read and written down."""
    known = read_accepted()
    missing = sorted({case.place for case in cases()} - set(known))
    assert missing == [], "python -m tests.interface --write, and read the difference"


@pytest.mark.parametrize("name", sorted(CALLS))
def test_the_valid_call_is_valid(name: str) -> None:
    with confined():
        CALLS[name]({})


def test_every_required_argument_has_a_valid_value() -> None:
    for name, call in CALLS.items():
        given = set(call.arguments())
        assert given <= set(parameters(surface()[function_of(name)])) | FIELDS, name


FIELDS = frozenset(("layers", "dropout", "eos", "steps", "learning_rate"))  # of **fields


def test_there_is_something_to_walk_over() -> None:
    assert len(surface()) > 120
    assert sum(len(parameters(one)) for one in surface().values()) > 400
