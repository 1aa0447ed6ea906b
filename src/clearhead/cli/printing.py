"""The one way to the terminal. What comes from outside cannot command it.

==============  ==============================================================================
``say``         a line for people: messages, errors, hints
``write``       output: visible on a terminal, as it is into a pipe or a file
``write_json``  output that a program reads; what cannot be seen is escaped, and nothing is lost
``console``     a console of ``rich``, for tables, pictures and progress bars
==============  ==============================================================================
"""

from __future__ import annotations

import json
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

import click

from clearhead.visible import VisibleStream, visible_lines

if TYPE_CHECKING:
    from rich.console import Console

CLEAR_LINE = "\r\x1b[K"


def say(text: str = "", *, err: bool = False, nl: bool = True, dim: bool = False) -> None:
    """Print a message."""
    shown = visible_lines(text)
    click.echo(click.style(shown, dim=True) if dim else shown, err=err, nl=nl)


def write(output: str | bytes, *, nl: bool = True) -> None:
    """Print output on standard output: visible on a terminal, otherwise unchanged."""
    if isinstance(output, bytes):
        click.echo(output, nl=False)
    else:
        writer()(output + "\n" if nl else output)


def writer() -> Callable[[str], None]:
    """Return a function that prints output which comes in pieces."""
    if not sys.stdout.isatty():
        # Click takes colours out of what goes into a pipe, unless it is told to leave them.
        return lambda piece: click.echo(piece, nl=False, color=True)
    visible = VisibleStream()
    return lambda piece: click.echo(visible(piece), nl=False)


def write_json(data: object, *, indent: int | None = None) -> None:
    """Print one JSON value: the same bytes on a terminal and into a pipe."""
    from clearhead.views.escape import plain_json

    text = plain_json(json.dumps(data, ensure_ascii=False, indent=indent))
    # A half of a surrogate pair has no bytes; JSON can still name it.
    click.echo(text.encode("utf-8", "backslashreplace").decode("utf-8"), color=True)


def clear_line() -> None:
    """Wipe the line of a progress message on standard error."""
    click.echo(CLEAR_LINE, err=True, nl=False)


def console(*, err: bool = False) -> Console:
    """A console of ``rich`` whose texts are made visible; markup in them is only text."""
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment
    from rich.text import Text

    class GatedConsole(Console):
        def render_str(self, text: str, **options: Any) -> Text:
            """A text is made visible before it is measured."""
            return super().render_str(visible_lines(text), **options)

        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterable[Segment]:
            """Every segment that is printed comes through here."""
            for text, style, control in super().render(renderable, options):
                yield Segment(text if control else visible_lines(text), style, control)

    return GatedConsole(stderr=err, highlight=False, markup=False, emoji=False)


def guard() -> None:
    """Send Python's own messages, warnings and tracebacks, the same way."""
    warnings.showwarning = _show_warning
    sys.excepthook = _show_exception


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    del file, line
    place = "" if issubclass(category, UserWarning) else f" ({filename}:{lineno})"
    say(f"Warning: {message}{place}", err=True)


def _show_exception(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> Any:
    say("".join(traceback.format_exception(kind, error, trace)), err=True, nl=False)
