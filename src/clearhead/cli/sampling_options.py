"""The options that ``generate`` and ``chat`` share: the model and the sampling.

An option without a default takes the value of the model's files (generation_config.json, GGUF
metadata), if they have one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from clearhead.cli.help_texts import DEFAULT_MODEL, MODEL

Command = TypeVar("Command", bound=Callable[..., Any])

FILE_SETTINGS = click.option(
    "--file-settings/--no-file-settings",
    default=True,
    show_default=True,
    help="Use the settings of the model's files (generation_config.json, GGUF metadata) for "
    "options that are not given.",
)

OPTIONS = (
    click.option("--model", "-m", default=DEFAULT_MODEL, show_default=True,
                 help=MODEL),
    click.option("--temperature", "-t", type=float,
                 help="Temperature; 0 always takes the likeliest token.  [default: the model's "
                 "files, or 0.7]"),
    click.option("--top-k", type=int, help="Sample from the K likeliest tokens."),
    click.option("--top-p", type=float,
                 help="Sample from the likeliest tokens, up to this total probability."),
    click.option("--min-p", type=float,
                 help="Sample from tokens with at least this share of the highest probability."),
    click.option("--typical", type=float,
                 help="Locally typical sampling, up to this total probability."),
    click.option("--min-tokens-to-keep", type=int, default=1, metavar="N",
                 help="Each of these four keeps at least N tokens."),
    click.option("--repetition-penalty", type=float,
                 help="Above 1: make tokens of the prompt and the text less likely."),
    click.option("--no-repeat-ngram-size", type=int, metavar="N",
                 help="No run of N tokens comes twice, the prompt included; 0: off."),
    click.option("--presence-penalty", type=float, default=0.0,
                 help="Above 0: make tokens of the text less likely."),
    click.option("--frequency-penalty", type=float, default=0.0,
                 help="Above 0: the same, for each time that the token occurs."),
    click.option("--stop", multiple=True, callback=lambda _context, _option, stops: stops or None,
                 help="Stop at this text. May be repeated."),
    click.option("--seed", type=int, help="Random seed: the same seed gives the same text."),
    click.option("--speculate", type=int, default=0, metavar="N",
                 help="Speculative decoding: guess up to N tokens from the text so far. The text "
                 "stays the same; repetitive texts are faster."),
    click.option("--engine/--no-engine", default=None,
                 help="Require the CPU engine, or use torch.  [default: the faster one]"),
    FILE_SETTINGS,
)  # fmt: skip


def sampling_options(command: Command) -> Command:
    """Add the options to a command; their values are named as in ``clearhead.generate``."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command
