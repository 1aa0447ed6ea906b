"""The sampling options are the arguments of ``generate``."""

from __future__ import annotations

import inspect

import click

from clearhead.cli.sampling_options import sampling_options
from clearhead.generation.generate import generate


def test_every_option_is_an_argument_with_the_same_default() -> None:
    command = click.command()(sampling_options(lambda **_: None))
    arguments = inspect.signature(generate).parameters
    given = command.make_context("x", []).params
    assert {"temperature", "top_k", "seed", "stop", "speculate"} <= set(given)
    for name, value in given.items():
        assert name in arguments, name
        if name != "model":
            assert value == arguments[name].default, name
