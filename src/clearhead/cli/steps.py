"""``clearhead steps``: attention step by step, in a worked example or in a real head."""

from __future__ import annotations

from typing import Any

import click

from clearhead.cli.help_texts import MODEL_OR_DEFAULT, SectionedCommand, examples
from clearhead.cli.loading import waiting
from clearhead.cli.looking_options import (
    model_of,
    opened,
    output_options,
    print_insight,
    show_or_write,
    text_of,
    try_next,
)

EXAMPLES = ("selfish", "batch", "action")


@click.command(
    "steps",
    cls=SectionedCommand,
    short_help="Show attention step by step, with every number.",
    epilog=examples(
        "clearhead steps action",
        'clearhead steps "The kids left, as they were scared." --word they',
        "clearhead steps run.trace --head L16H5 --html steps.html",
    ),
)
@click.argument("text", metavar="[TEXT|FILE|EXAMPLE]", default="selfish")
@click.option("--model", "-m", help=MODEL_OR_DEFAULT)
@click.option("--head", help="Head, such as L16H5.  [default: the most salient one]")
@click.option("--word", "-w", help="Query word.  [default: the most salient one]")
@click.option("--source", help="For an encoder-decoder: the text that its encoder reads.")
@output_options
def command(text: str = "selfish", **options: Any) -> None:
    """Show attention step by step: query, key, score, softmax, weighted sum.

    TEXT is a text for a model, a text file or a saved trace. An EXAMPLE needs no model: selfish
    (one query and four keys), batch (three queries in parallel) or action (self-attention over the
    sentence "Action gets results").
    """
    asked = any(options.get(name) is not None for name in ("model", "head", "word", "source"))
    if text in EXAMPLES and not asked:
        _example(text, options)
        return
    from clearhead.views.looking import look
    from clearhead.views.shown import ShownSteps

    chosen: dict[str, Any] = {name: options.get(name) for name in ("head", "word")}
    trace = opened(text)
    if trace is None:
        read, loaded = text_of(text), model_of(options.get("model"))
        with waiting("looking …"):
            table = look(loaded, read, source=options.get("source"), **chosen).insight.steps()
    else:
        table = look(trace, **chosen).insight.steps()
    if show_or_write(ShownSteps(table), options):
        try_next(f'look "…" --head {table.head}', "steps action", "steps --help")


def _example(name: str, options: dict[str, Any]) -> None:
    from clearhead.explain.worked_examples import worked_example
    from clearhead.views.shown import ShownSteps

    tables = worked_example(name)
    if len(tables) == 1 or any(options.get(kind) for kind in ("html", "svg", "png", "json", "csv")):
        shown = show_or_write(ShownSteps(tables[0]), options)
    else:
        for table in tables:
            print_insight(table)
        shown = True
    if shown:
        others = [f"steps {other}" for other in EXAMPLES if other != name]
        try_next(*others, 'steps "The kids left, as they were scared." --word they')
