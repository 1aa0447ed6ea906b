"""``clearhead map``: a head's whole map of a long text, as a picture."""

from __future__ import annotations

from typing import Any

import click

from clearhead.cli.loading import waiting
from clearhead.cli.looking_options import (
    DEFAULT_MODEL,
    aid_options,
    aids_of,
    model_of,
    opened,
    output_options,
    show_or_write,
    text_of,
)


@click.command("map")
@click.argument("file", metavar="FILE|TEXT")
@click.option("--model", "-m", help=f"A name, a folder, a .gguf file or a hub id.  "
              f"[default: {DEFAULT_MODEL}]")  # fmt: skip
@click.option("--head", help="The head: L16H5. The most telling one unless given.")
@click.option("--size", type=click.IntRange(1, 2048), default=512, show_default=True,
              help="Cells on a side, at most.")  # fmt: skip
@aid_options
@output_options
def command(file: str, model: str | None, head: str | None, size: int, **options: Any) -> None:
    """Show the whole attention map of one head over a long text.

    Neighbouring tokens share a cell, which shows the largest of their weights (or --pool mean,
    sum). FILE is a text, a saved trace, or - for standard input.
    """
    from clearhead.explain.long_map import long_map
    from clearhead.views.looking import look
    from clearhead.views.shown import Shown

    aids = aids_of(options)
    trace = opened(file)
    if trace is None:
        read, loaded = text_of(file), model_of(model)
        with waiting("reading the text …"):
            shown = look(loaded, read, head=head, **aids)
    else:
        shown = look(trace, head=head, **aids)
    with waiting("computing the map …"):
        picture = long_map(shown.insight, size=size)
    show_or_write(Shown(picture), options)
