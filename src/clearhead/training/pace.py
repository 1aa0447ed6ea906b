"""From minutes to steps: after a few steps it is clear how many there will be."""

from __future__ import annotations

MEASURED_SHARE, MEASURED_STEPS = 0.04, 20  # of the time, or so many steps if that is less
SPARE = 0.95  # the rest goes into validations and checkpoints


def planned_steps(step: int, spent: float, minutes: float) -> int | None:
    """How many steps fit into the minutes, or None while it is too early to tell."""
    enough = step >= MEASURED_STEPS or spent >= MEASURED_SHARE * 60 * minutes
    if step < 2 or not enough:
        return None
    return max(step + 1, int(SPARE * 60 * minutes * step / spent))
