"""``clearhead translate``: texts through an encoder-decoder model, with beam search."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from clearhead.cli.generate import not_utf8
from clearhead.cli.help_texts import SectionedCommand, examples
from clearhead.cli.loading import load_model
from clearhead.cli.preparing import prepare_engine
from clearhead.cli.printing import write, write_json
from clearhead.errors import InputError

if TYPE_CHECKING:
    from clearhead.checkpoints.load import Loaded
    from clearhead.generation.beam_search import Hypothesis


@click.command(
    "translate",
    cls=SectionedCommand,
    short_help="Translate texts with an encoder-decoder model.",
    epilog=examples(
        'clearhead translate --model dates "3rd of March 2021"',
        "clearhead translate --model ./trained < lines.txt",
    ),
)
@click.argument("texts", metavar="[TEXT]...", nargs=-1)
@click.option("--model", "-m", required=True,
              help="Encoder-decoder model: a name, a folder or a hub id.")  # fmt: skip
@click.option("--beams", "-b", type=int, default=5, show_default=True,
              help="Number of beams; 1 is greedy search.")  # fmt: skip
@click.option(
    "--best", type=int, default=1, show_default=True, help="Number of translations of each text."
)
@click.option("--length-penalty", type=float, default=1.0, show_default=True,
              help="Above 1: longer translations. Below 1: shorter ones.")  # fmt: skip
@click.option("--max-tokens", "-n", type=int, default=256, show_default=True,
              help="Maximum number of tokens.")  # fmt: skip
@click.option("--engine/--no-engine", default=None,
              help="Require the CPU engine, or use torch.  [default: the faster one]")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per translation.")
def command(
    texts: tuple[str, ...], model: str, beams: int, best: int, length_penalty: float,
    max_tokens: int, engine: bool | None, as_json: bool,
) -> None:  # fmt: skip
    """Translate every TEXT, or every line of standard input from a pipe.

    An encoder-decoder model turns one text into another: a translation, a date, a correction. On a
    terminal, characters that would command it are shown as signs; a pipe gets the text as it is.
    """
    if not texts and sys.stdin.isatty():
        raise click.UsageError("a text is missing: give it as an argument or from a pipe.")
    loaded = _translator(model)
    from clearhead.generation.beam_search import beam_search

    prepare_engine(loaded, engine)
    for text in texts or _lines():
        if not text.strip():
            write("")
            continue
        found = beam_search(
            loaded, text, beams=beams, best=best, max_tokens=max_tokens,
            length_penalty=length_penalty, engine=engine,
        )  # fmt: skip
        _show(text, found, as_json)


def _translator(name: str) -> Loaded:
    loaded = load_model(name)
    if loaded.config.kind != "encoder-decoder":
        raise InputError(
            f"translate wants an encoder-decoder model; {name} is a {loaded.config.kind}.",
            hint="a decoder continues texts: clearhead generate.",
        )
    return loaded


def _lines() -> Iterator[str]:
    try:
        for line in sys.stdin:
            yield line.removesuffix("\n")
    except UnicodeDecodeError as error:
        raise not_utf8("standard input", error) from None


def _show(text: str, found: list[Hypothesis], as_json: bool) -> None:
    for hypothesis in found:
        if as_json:
            fields = {"source": text} | asdict(hypothesis)
            write_json(fields)
        else:
            write(hypothesis.text)
