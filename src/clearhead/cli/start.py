"""Where the program starts: Ctrl-C is taken care of before anything else is imported.

So is how torch's threads wait, which their OpenMP library (GNU's) reads when it is loaded. By
default they spin for milliseconds after each piece of work. On cores that other programs want too,
that uses up their share of time, and the next piece waits until they are let in again.
"""

from __future__ import annotations

import gc
import os

from clearhead.cli import interrupts

SPINS = "2000"  # rounds of waiting before a thread sleeps; a few µs

interrupts.leave_at_once()
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", SPINS)
# What is imported stays. Python would look through it for garbage a hundred times meanwhile, which
# takes a fifth of the time until the first token.
gc.set_threshold(200_000, 20, 20)


def main() -> None:
    """Run the command line."""
    from clearhead.cli.main import main

    main()
