"""``clearhead steps``: attention step by step, in a worked example or in a real head."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clearhead.cli.checking import checked_model, did_you_mean, exists
from clearhead.cli.help_texts import MODEL_OR_DEFAULT, SectionedCommand, examples
from clearhead.cli.loading import waiting
from clearhead.cli.looking_options import (
    FILES,
    model_of,
    opened,
    output_options,
    print_insight,
    program,
    repeated,
    show_or_write,
    text_of,
    try_next,
)
from clearhead.cli.printing import say
from clearhead.errors import InputError

if TYPE_CHECKING:
    from clearhead.explain.step_table import StepTable

EXAMPLES = ("selfish", "batch", "action")


@click.command(
    "steps",
    cls=SectionedCommand,
    short_help="Show attention step by step, with every number.",
    epilog=examples(
        "clearhead steps action",
        'clearhead steps "The kids left, as they were scared." --word they',
        "clearhead steps run.trace --head L16H5 --html steps.html",
        "clearhead steps --numbers mine.csv",
    ),
)
@click.argument("text", metavar="[TEXT|FILE|EXAMPLE]", default="selfish")
@click.option("--model", "-m", callback=checked_model, help=MODEL_OR_DEFAULT)
@click.option("--head", help="Head, such as L16H5.  [default: the most salient one]")
@click.option("--word", "-w", help="Query word.  [default: the most salient one]")
@click.option("--source", help="For an encoder-decoder: the text that its encoder reads.")
@click.option("--numbers", metavar="FILE.csv", help="Your own numbers: lines such as key,cat,1,0; "
              "also query, value, scale, causal. See docs/seeing.md.")  # fmt: skip
@output_options
def command(text: str = "selfish", **options: Any) -> None:
    """Show attention step by step: query, key, score, softmax, weighted sum.

    TEXT is a text for a model, a text file or a saved trace. An EXAMPLE needs no model: selfish
    (one query and four keys), batch (three queries in parallel) or action (self-attention over the
    sentence "Action gets results"). --numbers shows your own numbers.
    """
    if options.get("numbers") is not None:
        _own_numbers(text, options)
        return
    asked = any(options.get(name) is not None for name in ("model", "head", "source"))
    if text in EXAMPLES and not asked:
        _example(text, options)
        return
    _check_example(text, asked or options.get("word") is not None)
    chosen: dict[str, Any] = {name: options.get(name) for name in ("head", "word")}
    trace = opened(text)
    read = text_of(text) if trace is None else ""
    from clearhead.views.looking import look
    from clearhead.views.shown import ShownSteps

    if trace is None:
        loaded = model_of(options.get("model"))
        with waiting("looking …"):
            table = look(loaded, read, source=options.get("source"), **chosen).insight.steps()
    else:
        table = look(trace, **chosen).insight.steps()
    if show_or_write(ShownSteps(table), options):
        try_next(*_again(text, read, table.head, options), "steps action", "steps --help")


def _check_example(text: str, asked: bool) -> None:
    """Refuse a word that was most likely meant as the name of an example."""
    found = "" if asked or exists(text) else did_you_mean(text, list(EXAMPLES))
    if found:
        raise InputError(
            f"there is no example {text!r}.{found}",
            hint=f"to look at this word itself: echo {shlex.quote(text)} | {program()} steps -",
        )


def _again(text: str, read: str, head: str, options: dict[str, Any]) -> list[str]:
    """The whole head; nothing if the text is too long to be pasted."""
    given = repeated(text, read)
    if given is None:
        return []
    for name in ("model", "source"):
        if options.get(name) is not None:
            given += f" --{name} {shlex.quote(options[name])}"
    return [f"look {given} --head {head}"]


def _example(name: str, options: dict[str, Any]) -> None:
    from clearhead.explain.worked_examples import worked_example

    if _shown(_of_word(worked_example(name), options), options):
        others = [f"steps {other}" for other in EXAMPLES if other != name]
        try_next(*others, 'steps "The kids left, as they were scared." --word they')


def _own_numbers(text: str, options: dict[str, Any]) -> None:
    unused = [name for name in ("model", "head", "source") if options.get(name) is not None]
    if unused or text != "selfish":
        what = "a text" if text != "selfish" else f"--{unused[0]}"
        raise InputError(f"--numbers has all that is computed; got {what} beside it.")
    from clearhead.explain.own_numbers.file import tables_of_file

    _shown(_of_word(tables_of_file(Path(options["numbers"])), options), options)


def _of_word(tables: list[StepTable], options: dict[str, Any]) -> list[StepTable]:
    """The tables of the query word that was asked for; all of them without one."""
    word = options.get("word")
    chosen = [table for table in tables if word is None or table.word == word]
    if not chosen:
        words = ", ".join(dict.fromkeys(table.word for table in tables))
        raise InputError(f"--word {word}: the queries are {words}.")
    return chosen


def _shown(tables: list[StepTable], options: dict[str, Any]) -> bool:
    """Show every table, or write the first to files; True if they were shown."""
    from clearhead.views.shown import ShownSteps

    files = any(options.get(kind) is not None for kind in FILES) or options.get("open_page")
    if len(tables) == 1 or files:
        single = [kind for kind in FILES if kind != "html" and options.get(kind) is not None]
        if len(tables) > 1 and single:
            what = ", ".join(kind.upper() for kind in single)
            said = f"{what}: the table of {tables[0].word}, one of {len(tables)}; the page has all"
            say(f"{said}. --word chooses another.", err=True)
        return show_or_write(ShownSteps(tables[0]), options)
    for table in tables:
        print_insight(table)
    return True
