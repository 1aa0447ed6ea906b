"""``clearhead why``: which words and heads made a prediction, as an exact sum."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from clearhead.cli.checking import checked_model
from clearhead.cli.help_texts import DEFAULT_MODEL, MODEL_OR_DEFAULT, SectionedCommand, examples
from clearhead.cli.loading import measuring
from clearhead.cli.looking_options import (
    model_of,
    opened,
    output_options,
    repeated,
    show_or_write,
    text_of,
    try_next,
)
from clearhead.cli.printing import say

if TYPE_CHECKING:
    from clearhead.trace.seen import Seen
    from clearhead.views.why.shown import ShownWhy

SENTENCE = "The capital of France is"


@click.command(
    "why",
    cls=SectionedCommand,
    short_help="Show which words and heads made a prediction.",
    epilog=examples(
        "clearhead why",
        'clearhead why "The capital of France is" -t " Paris" -i " London"',
        'clearhead why "Students opened their books" -p their --html why.html',
        'clearhead why "2021-" --model dates --source "3rd of March 2021"',
    ),
)
@click.argument("text", metavar="[TEXT|FILE]", required=False)
@click.option("--model", "-m", callback=checked_model, help=MODEL_OR_DEFAULT)
@click.option("--token", "-t", help="Token to explain, with its space: ' Paris'. Default: the "
              "likeliest.")  # fmt: skip
@click.option("--instead", "-i", help="Token to compare it with. With neither token: the second "
              "likeliest.")  # fmt: skip
@click.option("--position", "-p", help="Word whose prediction is explained: their; they#2; 3 for "
              "word 3. Default: the last.")  # fmt: skip
@click.option("--source", help="For an encoder-decoder: the text that its encoder reads.")
@click.option("--ablate/--no-ablate", "effects", default=None,
              help="Run the model without each head. Default: if the text is short.")  # fmt: skip
@output_options
def command(text: str | None = None, model: str | None = None, **options: Any) -> None:
    """Show which words and heads made the model predict a token after TEXT.

    The logit of the token, or the difference of two, is an exact sum over all heads and words.
    Beside each head stands what changes without it, measured in a real run. Of a saved trace, the
    weights are shown: there is no more in it.
    """
    trace = None if text is None else opened(text)
    if trace is not None:
        _show_trace(trace, options)
        return
    read = SENTENCE if text is None else text_of(text)
    loaded = model_of(model)
    shown = _explained(loaded, read, options)
    if show_or_write(shown, options):
        try_next(
            *_again(text, read, loaded.name, options),
            'why "your own text" --token " this" --instead " that"',
            "why --help",
        )


def _again(text: str | None, read: str, model: str, options: dict[str, Any]) -> list[str]:
    """The same as a page; nothing if the text is too long to be pasted."""
    given = "" if text is None else repeated(text, read)
    if given is None:
        return []
    named = "" if model == DEFAULT_MODEL else f" --model {shlex.quote(model)}"
    for name in ("token", "instead", "position", "source"):
        if options[name] is not None:
            named += f" --{name} {shlex.quote(options[name])}"
    return [f"why{' ' * bool(given)}{given}{named} --html why.html --open   # every head"]


def _show_trace(trace: Seen, options: dict[str, Any]) -> None:
    """What is known of a model that was only watched; then what is missing."""
    from clearhead.explain.why.only_watched import MISSING
    from clearhead.views.looking import look

    show_or_write(look(trace, word=options["position"]), options)
    say(f"Not explained: {MISSING}", err=True)


def _explained(loaded: Any, text: str, options: dict[str, Any]) -> ShownWhy:
    from clearhead.views.why.shown import why

    chosen = {name: options[name] for name in ("token", "instead", "position", "source", "effects")}
    with measuring("explaining …") as progress:
        return why(loaded, text, progress=progress, **chosen)
