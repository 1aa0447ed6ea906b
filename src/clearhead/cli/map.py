"""``clearhead map``: the whole attention map of one head over a long text, as a picture."""

from __future__ import annotations

from typing import Any

import click

from clearhead.cli.checking import checked_model
from clearhead.cli.help_texts import MODEL_OR_DEFAULT, SectionedCommand, examples
from clearhead.cli.loading import measuring, waiting
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
@click.option("--model", "-m", callback=checked_model, help=MODEL_OR_DEFAULT)
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
    aids = aids_of(options)
    trace = opened(file)
    read = text_of(file) if trace is None else ""
    from clearhead.explain.long_map import long_map
    from clearhead.views.looking import look
    from clearhead.views.shown import ShownHead

    if trace is None:
        loaded = model_of(model)
        with waiting("reading the text …"):
            shown = look(loaded, read, head=head, **aids)
    else:
        with waiting("opening the trace …"):
            shown = look(trace, head=head, **aids)
    with waiting("choosing the head …"):
        head = shown.chosen_head
    with measuring("computing the map …") as progress:
        picture = ShownHead(long_map(shown.insight, head, size=size, progress=progress))
    show_or_write(picture, options)
