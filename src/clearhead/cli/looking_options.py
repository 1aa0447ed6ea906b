"""Shared by ``look``, ``steps``, ``diff`` and ``map``: options, texts to read, results to show."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from clearhead.cli.checking import checked_output
from clearhead.cli.generate import read_prompt
from clearhead.cli.help_texts import DEFAULT_MODEL
from clearhead.cli.loading import load_model, waiting
from clearhead.cli.printing import console, say, write
from clearhead.errors import InputError

if TYPE_CHECKING:
    from clearhead.checkpoints.load import Loaded
    from clearhead.explain.pictures import Mark
    from clearhead.trace.seen import Seen
    from clearhead.views.shown import Shown

LONGEST_PATH = 255
PASTED = 300  # characters of a text that is repeated in a suggestion
FILE_ENDINGS = (".txt", ".md", ".rst", ".trace", ".csv", ".tsv", ".json", ".html", ".py", "/")
Command = TypeVar("Command", bound=Callable[..., Any])

AIDS = (
    click.option("--tokens", is_flag=True, help="Show tokens instead of whole words."),
    click.option("--hide", type=click.Choice(["first and special", "special", "nothing"]),
                 default="first and special", metavar="WHICH",
                 help="Columns to leave out: 'first and special' (the default), 'special' or "
                 "'nothing'. Their total weight is still shown."),
    click.option("--colour", type=click.Choice(["linear", "log"]), default="linear",
                 show_default=True, help="Colour scale."),
    click.option("--pool", type=click.Choice(["max", "mean", "sum"]), default="max",
                 show_default=True, help="How several heads are combined."),
    click.option("--measure", type=click.Choice(["weight", "value"]), default="weight",
                 show_default=True,
                 help="Attention weight, or weight times the norm of the value vector."),
)  # fmt: skip
KINDS = {
    "html": "Write an interactive page.",
    "svg": "Write a picture for papers.",
    "png": "Write a picture for slides.",
    "json": "Write the numbers as JSON.",
    "csv": "Write the numbers as CSV.",
}
OUTPUTS = (
    *(
        click.option(f"--{name}", callback=checked_output, metavar="OUT", help=what)
        for name, what in KINDS.items()
    ),
    click.option("--open", "open_page", is_flag=True, help="Open the page in a browser."),
)


FILES = tuple(KINDS)


def aid_options(command: Command) -> Command:
    """Add the reading aids to a command."""
    return _added(command, AIDS)


def output_options(command: Command) -> Command:
    """Add the files that can be written."""
    return _added(command, OUTPUTS)


def aids_of(options: dict[str, Any]) -> dict[str, Any]:
    """The aids among the options, as ``ch.look`` takes them."""
    return {
        "words": not options["tokens"],
        "hide": options["hide"],
        "colour": options["colour"],
        "pool": options["pool"],
        "measure": "weight·‖v‖" if options["measure"] == "value" else "weight",
    }


def text_of(given: str) -> str:
    """A text as it is; the content of a file if it names one; standard input for "-"."""
    if given == "-":
        return read_prompt("-", None)
    if is_file(given):
        return read_prompt(None, given)
    if _means_a_file(given):
        what = "is a folder" if Path(given).is_dir() else "does not exist"
        raise InputError(
            f"{given} {what}; wanted: a text, a text file, a saved trace or -.",
            hint=f"to look at these characters themselves: echo {shlex.quote(given)} | "
            f"{program()} look -",
        )
    return given


def _means_a_file(given: str) -> bool:
    """True if an argument that is not a file was most likely meant as one."""
    if len(given) > LONGEST_PATH or not given.isprintable() or any(map(str.isspace, given)):
        return False
    return given.endswith(FILE_ENDINGS) or given.startswith(("./", "../", "/", "~/"))


def is_file(given: str) -> bool:
    """True if an argument names an existing file."""
    if not given or len(given) > LONGEST_PATH or "\n" in given:
        return False
    try:
        return Path(given).is_file()
    except (OSError, ValueError):
        return False


def opened(given: str) -> Seen | None:
    """The trace that an argument names; None if it is none."""
    if not is_file(given):
        return None
    from clearhead.trace.trace_file import is_trace, open_trace

    return open_trace(given) if is_trace(Path(given)) else None


def model_of(name: str | None) -> Loaded:
    """The model that was asked for, or the default one."""
    return load_model(DEFAULT_MODEL if name is None else name)


def show_or_write(
    shown: Shown[object], options: dict[str, Any], page: Shown[object] | None = None
) -> bool:
    """Write the files that the options name, or show the result; True if it was shown.

    ``page``: what becomes the page, if that is more than is shown.
    """
    page = shown if page is None else page
    wanted = {name: options[name] for name in FILES if options.get(name) is not None}
    opening = bool(options.get("open_page"))
    for name, path in wanted.items():
        with waiting(f"drawing {path} …"):
            part = page if name == "html" else shown
            written = _written(part, name, path, opening and name == "html")
        if written is not None:
            say(f"{written} is written ({size_text(written.stat().st_size)}).")
    if opening and "html" not in wanted:
        with waiting("drawing the page …"):
            say(f"{page.html(open=True)} is open in your browser.")
    if wanted or opening:
        return False
    print_insight(shown.insight)
    return True


def size_text(size: int) -> str:
    """The size of a file in a unit that leaves something of it."""
    if size < 1000:
        return f"{size} bytes"
    return f"{size / 1e3:.0f} kB" if size < 1e6 else f"{size / 1e6:.1f} MB"


def print_insight(insight: object) -> None:
    """Show an insight in the terminal."""
    from rich.console import Group

    from clearhead.views.terminal.render import show

    terminal = console()
    with waiting("looking …"):
        parts = show(insight).parts(terminal.width)
    terminal.print(Group(*parts))


def program() -> str:
    """How this program was called: ``./run`` in a clone, ``clearhead`` once it is installed."""
    cloned = Path(sys.argv[0]).name == "__main__.py" and Path("run").is_file()
    return "./run" if cloned else "clearhead"


def repeated(given: str, read: str) -> str | None:
    """A text as an argument that can be pasted; None if it is too long for that.

    A file is repeated by its name. What came from standard input is gone, so that its text is.
    A text that begins with a dash would be taken for an option.
    """
    if given != "-":
        pasteable = len(given) <= PASTED and not given.startswith("-")
        return shlex.quote(given) if pasteable else None
    return shlex.quote(read) if len(read) <= PASTED and _pasteable(read) else None


def _pasteable(text: str) -> bool:
    plain = text.replace("\n", "")
    is_plain = plain.isprintable() and not text.startswith("-")
    return is_plain and not _means_a_file(text) and not is_file(text)


def word_name(marks: Sequence[Mark], place: int) -> str:
    """A word as an option that finds it again: "eyes#2" for the second of several."""
    text = marks[place].text
    alike = [number for number, mark in enumerate(marks) if mark.text == text]
    if text.isdecimal() or "#" in text:
        return str(place)
    return shlex.quote(text if len(alike) == 1 else f"{text}#{alike.index(place) + 1}")


def try_next(*lines: str) -> None:
    """Suggest other commands at the end of a command's output."""
    say("Try next:")
    for line in lines:
        say(f"  {program()} {line}")


def _written(shown: Shown[object], name: str, path: str, opening: bool) -> Path | None:
    if path != "-":
        if name == "html":
            return Path(shown.html(path, open=opening))
        return Path(getattr(shown, name)(path))
    content = getattr(shown, name)()
    if isinstance(content, bytes) and sys.stdout.isatty():
        raise InputError("a PNG cannot be printed in a terminal.", hint="--png picture.png")
    write(content, nl=False)
    return None


def _added(command: Command, options: tuple[Any, ...]) -> Command:
    for option in reversed(options):
        command = option(command)
    return command
