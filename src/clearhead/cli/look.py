"""``clearhead look``: the words that each word of a text attends to, in a picture."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from clearhead.cli.checking import checked_model
from clearhead.cli.help_texts import DEFAULT_MODEL, MODEL_OR_DEFAULT, SectionedCommand, examples
from clearhead.cli.loading import waiting
from clearhead.cli.looking_options import (
    aid_options,
    aids_of,
    model_of,
    opened,
    output_options,
    program,
    repeated,
    show_or_write,
    text_of,
    try_next,
    word_name,
)
from clearhead.cli.printing import say
from clearhead.errors import StoreError

if TYPE_CHECKING:
    from clearhead.checkpoints.load import Loaded
    from clearhead.views.shown import Shown, ShownLook

SENTENCE = "The kids were scared of the lions, so they left right away."
BUILT_IN, DATE = "dates", "3rd of March 2021"


@click.command(
    "look",
    cls=SectionedCommand,
    short_help="Show which words each word of a text attends to.",
    epilog=examples(
        "clearhead look",
        'clearhead look "The kids left, as they were scared." --word they',
        "clearhead look essay.txt --head L16H5 --html look.html --open",
        'clearhead look "The capital of France is Paris." --predictions',
        'clearhead look "The capital of France is" --lens',
    ),
)
@click.argument("text", metavar="[TEXT|FILE]", required=False)
@click.option("--model", "-m", callback=checked_model, help=MODEL_OR_DEFAULT)
@click.option(
    "--word", "-w", help="Query word: they; they#2 for its second occurrence; 9 for position 9."
)
@click.option("--head", help="Head: L16H5; L16 for a whole layer; all.")
@click.option("--source", help="For an encoder-decoder: the text that its encoder reads; "
              "TEXT is then the text of its decoder.")  # fmt: skip
@click.option("--generate", "-n", type=int, default=0, metavar="N",
              help="Generate N more tokens, and show what each attends to.")  # fmt: skip
@click.option(
    "--predictions",
    is_flag=True,
    help="Show what the model says next at each token instead; with --word, at one.",
)
@click.option(
    "--top",
    type=int,
    default=5,
    show_default=True,
    metavar="N",
    help="With --predictions: the N likeliest tokens.",
)
@click.option(
    "--lens", is_flag=True, help="Show what the model would say after each layer instead."
)
@aid_options
@output_options
def command(text: str | None = None, model: str | None = None, **options: Any) -> None:
    """Show which words each word of TEXT attends to.

    TEXT is a sentence, a text file, a saved trace, or - for standard input. Without TEXT, it shows
    an example. Without --word and --head, it shows the most salient word and head. The page
    (--html) has everything, predictions and lens included.
    """
    if options["predictions"] and options["lens"]:
        raise click.UsageError("--predictions and --lens are two pictures: give one of them.")
    if text is None:
        shown, other = _example(model, options)
    else:
        shown, other = _looked(text, model, options), False
    if show_or_write(_part(shown, options), options, page=shown):
        if other:
            _explain_how_to_get(DEFAULT_MODEL)
        try_next(*_tries(shown, text, options))


def _part(shown: ShownLook, options: dict[str, Any]) -> Shown[object]:
    """What the terminal, pictures and tables show: the look, its predictions or its lens."""
    with waiting("predicting …"):
        if options["lens"]:
            return shown.lens()
        if not options["predictions"]:
            return shown
        word: str | None = options["word"]
        if word is None:
            return shown.predictions(top=options["top"])
        return shown.predictions(word, options["top"])


def _looked(text: str, model: str | None, options: dict[str, Any]) -> ShownLook:
    chosen = {name: options[name] for name in ("word", "head")} | aids_of(options)
    trace = opened(text)
    if trace is None:
        read = text_of(text)  # a missing file is told before anything is imported
        return _run(model_of(model), read, options)
    from clearhead.views.looking import look

    return look(trace, **chosen)


def _example(model: str | None, options: dict[str, Any]) -> tuple[ShownLook, bool]:
    """The sentence of the textbook; offline without its model, the built-in one."""
    if model is not None:
        return _run_example(model_of(model), options), False
    try:
        return _run_example(model_of(None), options), False
    except StoreError:
        chosen = options | {"word": None, "head": None, "source": None, "generate": 0}
        return _run(model_of(BUILT_IN), DATE, chosen), True


def _run_example(loaded: Loaded, options: dict[str, Any]) -> ShownLook:
    return _run(loaded, DATE if loaded.name == BUILT_IN else SENTENCE, options)


def _run(loaded: Loaded, text: str, options: dict[str, Any]) -> ShownLook:
    from clearhead.views.looking import look

    chosen = {name: options[name] for name in ("word", "head", "source", "generate")}
    with waiting("looking …"):
        shown = look(loaded, text, **chosen, **aids_of(options))
        shown.why  # noqa: B018 (a wrong word or head is reported before anything is drawn)
    return shown


def _explain_how_to_get(name: str) -> None:
    say(
        f"\nThis is the built-in model {BUILT_IN}: {name} is not on this machine and could not be "
        f"fetched.\nWith a connection, get it once: {program()} models pull {name}\n"
    )


def _tries(shown: ShownLook, text: str | None, options: dict[str, Any]) -> list[str]:
    """Commands that can be pasted; those that need a text are left out if it is too long."""
    from clearhead.explain.predictions import has_predictions

    example = DATE if shown.name == BUILT_IN else SENTENCE
    given = "" if text is None else repeated(text, _read(shown, options))
    rest = ['look "your own text"', "look --help"]
    if given is None:
        return rest
    model = f" --model {shlex.quote(shown.name)}" * (shown.name not in ("", DEFAULT_MODEL))
    if options["source"] is not None:
        model += f" --source {shlex.quote(options['source'])}"
    begin = f"look{' ' * bool(given)}{given}{model}"
    tries = [f"{begin} --html look.html --open   # every head, in your browser"]
    if "H" in shown.chosen_head and not options["tokens"] and not options["generate"]:
        chosen = f"--head {shown.chosen_head} --word {word_name(shown.rows, shown.chosen_word)}"
        tries.append(f"steps {given or shlex.quote(example)}{model} {chosen}   # number by number")
    if has_predictions(shown.insight):
        other = "--lens" if options["predictions"] else "--predictions"
        tries.append(f"{begin} {other}   # what the model says next")
    return [*tries, *rest]


def _read(shown: ShownLook, options: dict[str, Any]) -> str:
    """The text that was given; an encoder-decoder reads it with its encoder."""
    translated = shown.source_text is not None and options["source"] is None
    return (shown.source_text or "") if translated else shown.text
