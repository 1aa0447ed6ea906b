"""``clearhead look``: where the words of a text look, in a picture."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from clearhead.cli.loading import waiting
from clearhead.cli.looking_options import (
    DEFAULT_MODEL,
    aid_options,
    aids_of,
    model_of,
    opened,
    output_options,
    program,
    show_or_write,
    text_of,
    try_next,
)
from clearhead.errors import StoreError

if TYPE_CHECKING:
    from clearhead.checkpoints.load import Loaded
    from clearhead.views.shown import Shown

SENTENCE = "The kids were scared of the lions, so they left right away."
QUOTED = 64  # characters of a text that is repeated
BUILT_IN, DATE = "dates", "3rd of March 2021"


@click.command("look")
@click.argument("text", metavar="TEXT|FILE", required=False)
@click.option("--model", "-m", help=f"A name (clearhead models), a folder, a .gguf file or a hub "
              f"id.  [default: {DEFAULT_MODEL}]")  # fmt: skip
@click.option("--word", "-w", help="The word that asks: they, or they#2 for the second, or 9.")
@click.option("--head", help="The head to show: L16H5; L16 for a layer; all.")
@click.option("--source", help="For a translation model: what its encoder reads (TEXT is then what "
              "its decoder reads).")  # fmt: skip
@click.option("--generate", "-n", type=int, default=0, metavar="N",
              help="Write N tokens more, and show what each looked at.")  # fmt: skip
@aid_options
@output_options
def command(text: str | None = None, model: str | None = None, **options: Any) -> None:
    """See where each word of TEXT looks: which words a transformer attends to.

    TEXT is a sentence, a text file, a saved trace, or - for standard input. Without it, an example.
    The word and the head that are shown first are the most telling ones, unless you choose.
    """
    if text is None:
        shown, other = _example(model, options)
    else:
        shown, other = _looked(text, model, options), False
    if show_or_write(shown, options):
        if other:
            _say_how_to_get(DEFAULT_MODEL)
        try_next(*_tries(shown, text))


def _looked(text: str, model: str | None, options: dict[str, Any]) -> Shown:
    from clearhead.views.looking import look

    chosen = {name: options[name] for name in ("word", "head")} | aids_of(options)
    trace = opened(text)
    if trace is not None:
        return look(trace, **chosen)
    read = text_of(text)
    return _run(model_of(model), read, options)


def _example(model: str | None, options: dict[str, Any]) -> tuple[Shown, bool]:
    """The sentence of the textbook; offline without its model, the built-in one."""
    if model is not None:
        return _run_example(model_of(model), options), False
    try:
        return _run_example(model_of(None), options), False
    except StoreError:
        chosen = options | {"word": None, "head": None, "source": None, "generate": 0}
        return _run(model_of(BUILT_IN), DATE, chosen), True


def _run_example(loaded: Loaded, options: dict[str, Any]) -> Shown:
    return _run(loaded, DATE if loaded.name == BUILT_IN else SENTENCE, options)


def _run(loaded: Loaded, text: str, options: dict[str, Any]) -> Shown:
    from clearhead.views.looking import look

    chosen = {name: options[name] for name in ("word", "head", "source", "generate")}
    with waiting("looking …"):
        shown = look(loaded, text, **chosen, **aids_of(options))
        shown.why  # noqa: B018 (a wrong word or head is told before anything is drawn)
    return shown


def _say_how_to_get(name: str) -> None:
    click.echo(
        f"\nThis is the built-in model {BUILT_IN}: {name} is not on this machine and could not be "
        f"fetched.\nWith a connection, get it once: {program()} models pull {name}\n"
    )


def _tries(shown: Shown, text: str | None) -> list[str]:
    said = "" if text is None else f" {_quoted(text)}"
    full = said or f" {_quoted(DATE if shown.name == BUILT_IN else SENTENCE)}"
    model = f" --model {shown.name}" if shown.name not in ("", DEFAULT_MODEL) else ""
    tries = [f"look{said}{model} --html look.html --open   # every head, in your browser"]
    if "H" in shown.chosen_head:
        word = _quoted(shown.rows[shown.chosen_word].text)
        chosen = f"--head {shown.chosen_head} --word {word}"
        tries.append(f"steps{full}{model} {chosen}   # number by number")
    return [*tries, 'look "your own text"', "look --help"]


def _quoted(text: str) -> str:
    return shlex.quote(text) if len(text) <= QUOTED and text.isprintable() else "…"
