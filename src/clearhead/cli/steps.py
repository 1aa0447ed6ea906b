"""``clearhead steps``: attention step by step, of a worked example or of a real head."""

from __future__ import annotations

from typing import Any

import click

from clearhead.cli.loading import waiting
from clearhead.cli.looking_options import (
    DEFAULT_MODEL,
    model_of,
    opened,
    output_options,
    print_insight,
    show_or_write,
    text_of,
    try_next,
)

EXAMPLES = ("selfish", "batch", "action")


@click.command("steps")
@click.argument("text", metavar="TEXT|FILE|EXAMPLE", default="selfish")
@click.option("--model", "-m", help=f"A name, a folder, a .gguf file or a hub id.  "
              f"[default: {DEFAULT_MODEL}]")  # fmt: skip
@click.option("--head", help="The head: L16H5. The most telling one unless given.")
@click.option("--word", "-w", help="The word that asks. The most telling one unless given.")
@click.option("--source", help="For a translation model: what its encoder reads.")
@output_options
def command(text: str = "selfish", **options: Any) -> None:
    """Show attention step by step: q, k, score, softmax, sum.

    TEXT is read by a model; a saved trace has its own. Or one of the worked EXAMPLEs, which need no
    model: selfish (one query against four keys), batch (three queries in parallel), action
    (self-attention over the sentence "Action gets results").
    """
    asked = any(options.get(name) is not None for name in ("model", "head", "word", "source"))
    if text in EXAMPLES and not asked:
        _example(text, options)
        return
    from clearhead.views.looking import look
    from clearhead.views.shown import Shown

    chosen: dict[str, Any] = {name: options.get(name) for name in ("head", "word")}
    trace = opened(text)
    if trace is None:
        read, loaded = text_of(text), model_of(options.get("model"))
        with waiting("looking …"):
            table = look(loaded, read, source=options.get("source"), **chosen).insight.steps()
    else:
        table = look(trace, **chosen).insight.steps()
    if show_or_write(Shown(table), options):
        try_next(f'look "…" --head {table.head}', "steps action", "steps --help")


def _example(name: str, options: dict[str, Any]) -> None:
    from clearhead.explain.worked_examples import worked_example
    from clearhead.views.shown import Shown

    tables = worked_example(name)
    if len(tables) == 1 or any(options.get(kind) for kind in ("html", "svg", "png", "json", "csv")):
        shown = show_or_write(Shown(tables[0]), options)
    else:
        for table in tables:
            print_insight(table)
        shown = True
    if shown:
        others = [f"steps {other}" for other in EXAMPLES if other != name]
        try_next(*others, 'steps "The kids left, as they were scared." --word they')
