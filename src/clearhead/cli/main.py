"""``clearhead``: finds the command; shows errors with a hint and without a traceback."""

from __future__ import annotations

import importlib
import io
import sys
from typing import Any

import click

from clearhead import __version__
from clearhead.cli import interrupts
from clearhead.cli.checking import LOOSE, did_you_mean
from clearhead.cli.help_texts import examples
from clearhead.cli.printing import guard, say
from clearhead.errors import ClearheadError

SECTIONS = {
    "Learn": ("learn",),
    "See attention": ("studio", "look", "why", "steps", "map", "heads", "diff"),
    "Run models": ("generate", "chat", "translate"),
    "Get models": ("models", "train"),
}
COMMANDS = {name: f"clearhead.cli.{name}" for section in SECTIONS.values() for name in section}
DEFAULT_COMMAND = "look"


class LazyGroup(click.Group):
    """Imports a command only when it is needed, so that help and errors come at once."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Every command, in the order of the sections."""
        return list(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands in sections, each with its one-line help."""
        for title, names in SECTIONS.items():
            commands = ((name, self.get_command(ctx, name)) for name in names)
            with formatter.section(title):
                formatter.write_dl(
                    [(name, found.get_short_help_str(70)) for name, found in commands if found]
                )

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; Ctrl-C is not an error of it."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise click.exceptions.Abort from None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command of the first argument; of an unknown one, what was probably meant."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            meant = did_you_mean(args[0], list(COMMANDS), LOOSE)
            ctx.fail(f"there is no command {args[0]!r}.{meant}")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The ``command`` of the module of that name."""
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(COMMANDS[cmd_name]).command
        assert isinstance(command, click.Command)
        return command


@click.group(
    cls=LazyGroup,
    epilog=examples(
        "clearhead",
        'clearhead look "The kids left, as they were scared." --word they',
        'clearhead generate "Students opened their"',
        "clearhead COMMAND --help",
    ),
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="clearhead")
@click.pass_context
def cli(context: click.Context) -> None:
    """See, number by number, what any transformer attends to - at full speed.

    Without a command, it shows an example: clearhead look.
    """
    if context.invoked_subcommand is None:
        command = cli.get_command(context, DEFAULT_COMMAND)
        assert command is not None
        context.invoke(command)


def main() -> None:
    """Run the command line.

    The exit code is 0, 1 for an error of ours, 2 for wrong usage, 130 after Ctrl-C.
    """
    guard()
    try:
        try:
            interrupts.listen()
            code = _exit_code()
        finally:  # from here on no exception can come of Ctrl-C, so that Python ends without one
            interrupts.leave_at_once()
    except (click.exceptions.Abort, KeyboardInterrupt):
        interrupts.leave()
    except Exception:
        if interrupts.heard():  # an import that Ctrl-C cut in two fails in ways of its own
            interrupts.leave()
        raise
    sys.exit(code)


def _exit_code() -> int:
    """Run the command and show its error, if there is one."""
    try:
        cli.main(prog_name="clearhead", standalone_mode=False)
    except click.ClickException as error:
        message = io.StringIO()
        error.show(file=message)
        say(message.getvalue(), err=True, nl=False)
        return error.exit_code
    except ClearheadError as error:
        say(f"Error: {error.message}", err=True)
        if error.hint is not None:
            say(f"Hint: {error.hint}", err=True)
        return 1
    except BrokenPipeError:  # the reader of our output went away, as `head` does
        sys.stderr.close()
    return 0
