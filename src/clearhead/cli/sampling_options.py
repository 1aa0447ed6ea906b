"""The options that ``generate`` and ``chat`` share: how tokens are chosen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

OPTIONS = (
    click.option("--model", "-m", default="smollm2", show_default=True,
                 help="A name (clearhead models), a folder, a .gguf file or a hub id."),
    click.option("--temperature", "-t", type=float,
                 help="0: always the likeliest token. 0.7 unless given."),
    click.option("--top-k", type=int, help="Only the K likeliest tokens."),
    click.option("--top-p", type=float, help="Only the likeliest tokens, up to this mass."),
    click.option("--min-p", type=float,
                 help="Only tokens at least so many times as likely as the likeliest."),
    click.option("--typical", type=float, help="Only tokens of typical surprise, up to this mass."),
    click.option("--repetition-penalty", type=float, default=1.0,
                 help="Above 1: against tokens that were there before."),
    click.option("--presence-penalty", type=float, default=0.0,
                 help="Above 0: against tokens that were written before."),
    click.option("--frequency-penalty", type=float, default=0.0,
                 help="The same, for each time that they were."),
    click.option("--stop", multiple=True, help="End at this text; may be given several times."),
    click.option("--seed", type=int, help="The same seed gives the same text."),
    click.option("--speculate", type=int, default=0, metavar="N",
                 help="Guess up to N tokens ahead from the text itself: faster where it repeats."),
    click.option("--engine/--no-engine", default=None,
                 help="Insist on the CPU engine, or on torch; chosen by itself otherwise."),
)  # fmt: skip


def sampling_options(command: Command) -> Command:
    """Add the options to a command; their values are named as in ``clearhead.generate``."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command
