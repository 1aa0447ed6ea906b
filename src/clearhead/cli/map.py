"""``clearhead map``: the whole attention map of one head over a long text, as a picture."""

from __future__ import annotations

from typing import Any

import click

from clearhead.cli.help_texts import MODEL_OR_DEFAULT, SectionedCommand, examples
from clearhead.cli.loading import waiting
from clearhead.cli.looking_options import (
    aid_options,
    aids_of,
    model_of,
    opened,
    output_options,
    show_or_write,
    text_of,
)


@click.command(
    "map",
    cls=SectionedCommand,
    short_help="Draw the attention map of one head over a long text.",
    epilog=examples(
        "clearhead map chapter.txt --head L16H5 --png map.png",
        "clearhead map run.trace --size 256",
    ),
)
@click.argument("file", metavar="FILE|TEXT")
@click.option("--model", "-m", help=MODEL_OR_DEFAULT)
@click.option("--head", help="Head, such as L16H5.  [default: the most salient one]")
@click.option("--size", type=click.IntRange(1, 2048), default=512, show_default=True,
              help="Maximum number of cells on a side.")  # fmt: skip
@aid_options
@output_options
def command(file: str, model: str | None, head: str | None, size: int, **options: Any) -> None:
    """Draw the whole attention map of one head over a long text.

    FILE is a text file, a text, a saved trace, or - for standard input. Neighbouring tokens share a
    cell, which shows their largest weight (or their mean or sum: --pool).
    """
    from clearhead.views.looking import look

    aids = aids_of(options)
    trace = opened(file)
    if trace is None:
        read, loaded = text_of(file), model_of(model)
        with waiting("reading the text …"):
            shown = look(loaded, read, head=head, **aids)
    else:
        shown = look(trace, head=head, **aids)
    with waiting("computing the map …"):
        picture = shown.map(size=size)
    show_or_write(picture, options)
