"""Where the program starts: Ctrl-C is taken care of before anything else is imported."""

from __future__ import annotations

from clearhead.cli import interrupts

interrupts.leave_at_once()


def main() -> None:
    """Run the command line."""
    from clearhead.cli.main import main

    main()
