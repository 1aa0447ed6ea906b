"""``clearhead translate``: texts through an encoder-decoder model, with beam search."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from clearhead.cli.generate import not_utf8
from clearhead.cli.loading import load_model
from clearhead.cli.preparing import prepare_engine
from clearhead.errors import InputError

if TYPE_CHECKING:
    from clearhead.checkpoints.load import Loaded
    from clearhead.generation.beam_search import Hypothesis


@click.command("translate")
@click.argument("texts", metavar="TEXT...", nargs=-1)
@click.option("--model", "-m", required=True, help="An encoder-decoder: a folder or a hub id.")
@click.option("--beams", "-b", type=int, default=5, show_default=True,
              help="How many beginnings to follow; 1 is greedy.")  # fmt: skip
@click.option("--best", type=int, default=1, help="How many translations of each text.")
@click.option("--length-penalty", type=float, default=1.0, show_default=True,
              help="Above: longer texts. Below: shorter ones.")  # fmt: skip
@click.option("--max-tokens", "-n", type=int, default=256, show_default=True,
              help="How many tokens at most.")  # fmt: skip
@click.option("--engine/--no-engine", default=None, help="Insist on the CPU engine, or on torch.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per translation.")
def command(
    texts: tuple[str, ...], model: str, beams: int, best: int, length_penalty: float,
    max_tokens: int, engine: bool | None, as_json: bool,
) -> None:  # fmt: skip
    """Translate every TEXT, or every line of standard input when it is piped.

    Whatever the model was trained to turn texts into: one line out for each line in.
    """
    if not texts and sys.stdin.isatty():
        raise click.UsageError("a text is wanted, as an argument or piped in.")
    loaded = _translator(model)
    from clearhead.generation.beam_search import beam_search

    prepare_engine(loaded, engine)
    for text in texts or _lines():
        if not text.strip():
            click.echo()
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
            click.echo(json.dumps(fields, ensure_ascii=False))
        else:
            click.echo(hypothesis.text)
