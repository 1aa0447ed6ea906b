"""``clearhead``: finds the command, shows errors with a hint and without a traceback."""

from __future__ import annotations

import importlib
import sys

import click

from clearhead import __version__
from clearhead.errors import ClearheadError

COMMANDS = {
    "chat": "clearhead.cli.chat",
    "diff": "clearhead.cli.diff",
    "generate": "clearhead.cli.generate",
    "heads": "clearhead.cli.heads",
    "look": "clearhead.cli.look",
    "map": "clearhead.cli.map",
    "models": "clearhead.cli.models",
    "steps": "clearhead.cli.steps",
    "train": "clearhead.cli.train",
    "translate": "clearhead.cli.translate",
}
MAIN_JOB = "look"


class LazyGroup(click.Group):
    """Loads only the command that is called, so that help and errors come at once."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Every command, in alphabetical order."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The ``command`` of the module that bears the name."""
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(COMMANDS[cmd_name]).command
        assert isinstance(command, click.Command)
        return command


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="clearhead")
@click.pass_context
def cli(context: click.Context) -> None:
    """See, number by number, what any transformer attends to - at full speed.

    Without a command: the main job, a look at a sentence with the default model.
    """
    if context.invoked_subcommand is None:
        command = cli.get_command(context, MAIN_JOB)
        assert command is not None
        context.invoke(command)


def main() -> None:
    """Run the command line; the exit code is 0, 1 for an error of ours, 2 for wrong usage."""
    try:
        cli.main(prog_name="clearhead", standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("stopped.", err=True)
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except ClearheadError as error:
        click.echo(f"Error: {error.message}", err=True)
        if error.hint is not None:
            click.echo(f"Hint: {error.hint}", err=True)
        sys.exit(1)
    except BrokenPipeError:  # the reader of our output went away, as `head` does
        sys.stderr.close()
        sys.exit(0)
