from __future__ import annotations

from clearhead.trace.watching.doors.unfused.following import (
    follow_steps,
    is_followed,
    steps_paused,
)


def test_a_module_within_a_followed_one_is_not_followed_again() -> None:
    assert not is_followed()
    end = follow_steps()
    inner = follow_steps()
    assert is_followed()
    inner()
    assert is_followed()
    with steps_paused():
        assert not is_followed()
    end()
    assert not is_followed()
