"""``clearhead translate``: texts through an encoder-decoder model, with beam search."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from clearhead.cli.checking import checked_model
from clearhead.cli.generate import not_utf8
from clearhead.cli.help_texts import SectionedCommand, examples
from clearhead.cli.loading import load_model
from clearhead.cli.output.preparing import prepare_engine
from clearhead.cli.printing import say, write, write_json
from clearhead.cli.sampling_options import FILE_SETTINGS
from clearhead.errors import InputError

if TYPE_CHECKING:
    from clearhead.checkpoints.load import Loaded
    from clearhead.generation.beam_search import EarlyStopping, Hypothesis

MAX_TOKENS = 256  # of a translation
# What a model was trained on, and the probability of a whole answer that such texts reach.
TRAINED = {"dates": ("dates in English words and numbers, such as 3rd of March 2021,", 0.99)}
STOPPING: dict[str, EarlyStopping] = {"no": False, "yes": True, "never": "never"}


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
@click.option("--model", "-m", required=True, callback=checked_model,
              help="Encoder-decoder model: a name, a folder or a hub id.")  # fmt: skip
@click.option("--beams", "-b", type=int,
              help="Number of beams; 1 is greedy search.  [default: the model's files, or "
              "5]")  # fmt: skip
@click.option(
    "--best", type=int, default=1, show_default=True, help="Number of translations of each text."
)
@click.option("--length-penalty", type=float,
              help="Above 1: longer translations. Below 1: shorter ones.  [default: the model's "
              "files, or 1]")  # fmt: skip
@click.option("--early-stopping", type=click.Choice(list(STOPPING)),
              help="When the search ends. no: when no beam, at its present length, could beat the "
              "finished texts. yes: when there are so many of them as beams. never: when no beam "
              "could, at any length.  [default: the model's files, or no]")  # fmt: skip
@click.option("--repetition-penalty", type=float,
              help="Above 1: make tokens of the translation less likely again.")  # fmt: skip
@click.option("--no-repeat-ngram-size", type=int, metavar="N",
              help="No run of N tokens comes twice; 0: off.")  # fmt: skip
@click.option("--max-tokens", "-n", type=int,
              help="Maximum number of tokens.  [default: the model's files, or 256]")  # fmt: skip
@FILE_SETTINGS
@click.option("--engine/--no-engine", default=None,
              help="Require the CPU engine, or use torch.  [default: the faster one]")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per translation.")
def command(
    texts: tuple[str, ...], model: str, early_stopping: str | None, engine: bool | None,
    as_json: bool, **options: Any,
) -> None:  # fmt: skip
    """Translate every TEXT, or every line of standard input from a pipe.

    Options that are not given come from the model's files, if those have them.

    An encoder-decoder model turns one text into another: a translation, a date, a correction. On a
    terminal, characters that would command it are shown as signs; a pipe gets the text as it is.
    """
    if not texts and sys.stdin.isatty():
        raise click.UsageError("a text is missing: give it as an argument or from a pipe.")
    loaded = _translator(model)
    from clearhead.generation.beam_search import beam_search

    limited = options["file_settings"] and loaded.generation.limits_length
    if options["max_tokens"] is None and not limited:
        options["max_tokens"] = MAX_TOKENS
    stopping = None if early_stopping is None else STOPPING[early_stopping]
    prepare_engine(loaded, engine)
    for text in texts or _lines():
        if not text.strip():
            write("")
            continue
        found = beam_search(loaded, text, early_stopping=stopping, engine=engine, **options)
        _show(text, found, as_json)
        _warn(loaded, text, found)


def _warn(loaded: Loaded, text: str, found: list[Hypothesis]) -> None:
    """Say when a text is nothing that the model was trained for."""
    tokenizer = loaded.tokenizer
    unknown = None if tokenizer is None else tokenizer.specials.unk
    if tokenizer is not None and unknown is not None and unknown in tokenizer.encode(text):
        say(f"Warning: {loaded.name} does not know some characters of this text.", err=True)
    trained, sure = TRAINED.get(loaded.name, ("", 0.0))
    probability = math.exp(found[0].log_probability) if found else 1.0
    if probability < sure:
        say(
            f"Warning: {loaded.name} is not sure of this: probability {probability:.2f}. It was "
            f"trained on {trained} only.",
            err=True,
        )


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
