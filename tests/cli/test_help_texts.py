"""Help texts: every command has examples and fits 80 columns."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from clearhead.cli.help_texts import SectionedCommand, examples
from clearhead.cli.main import COMMANDS, cli


def commands() -> Iterator[tuple[str, click.Command]]:
    context = click.Context(cli)
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        yield name, command
        if isinstance(command, click.Group):
            yield from ((f"{name} {sub}", found) for sub, found in command.commands.items())


@pytest.mark.parametrize(("name", "command"), [("", cli), *commands()])
def test_examples_and_width(name: str, command: click.Command) -> None:
    shown = command.get_help(click.Context(command, info_name=name, max_content_width=80))
    assert f"Examples:\n    clearhead {name}".rstrip() in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_every_option_is_described() -> None:
    for name, command in commands():
        for option in command.params:
            if isinstance(option, click.Option):
                assert option.help and option.help[-1] in ".]", f"{name} {option.name}"


def test_sections() -> None:
    @click.command(cls=SectionedCommand, epilog=examples("clearhead x"))
    @click.argument("text")
    @click.option("--top-k", help="Few.")
    @click.option("--other", help="Other.")
    def command() -> None:
        """Nothing."""

    shown = command.get_help(click.Context(command))
    options, sampling = shown.split("Sampling:\n")
    assert "--other" in options and "--top-k" in sampling and "--top-k" not in options


TEXTS = ("look", "why", "steps", "map", "generate")  # those that take one text


@pytest.mark.parametrize("name", list(COMMANDS))
def test_a_text_without_quotation_marks_is_told_of_them(name: str) -> None:
    if name in (
        "translate",
        "train",
        "models",
        "studio",
    ):  # they take several arguments, or subcommands
        return
    done = CliRunner().invoke(cli, [name, "The", "kids", "left"])
    assert done.exit_code == 2
    hint = f'{name} "several words"'
    assert (hint in done.output) == (name in TEXTS)


@pytest.mark.parametrize("module", ["torch", "numba", "rich", "numpy"])
def test_help_imports_nothing_heavy(module: str) -> None:
    import subprocess

    code = (
        "import sys, click; from clearhead.cli.main import cli; "
        f"cli.get_help(click.Context(cli)); sys.exit({module!r} in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=120).returncode == 0
