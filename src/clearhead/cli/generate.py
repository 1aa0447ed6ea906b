"""``clearhead generate``: continues a prompt, token by token."""

from __future__ import annotations

import sys
from collections.abc import Generator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clearhead.cli.help_texts import SectionedCommand, examples
from clearhead.cli.loading import load_model, waiting
from clearhead.cli.output.preparing import EIGHT_BITS, prepare_engine
from clearhead.cli.output.token_lines import ALTERNATIVES, show_tokens
from clearhead.cli.printing import say, write, write_json, writer
from clearhead.cli.sampling_options import sampling_options
from clearhead.errors import InputError

if TYPE_CHECKING:
    from clearhead.generation.event import Event


@click.command(
    "generate",
    cls=SectionedCommand,
    short_help="Continue a prompt, token by token.",
    epilog=examples(
        'clearhead generate "Students opened their"',
        "clearhead generate --file story.txt --max-tokens 300",
        'clearhead generate "Once" --samples 3 --seed 1',
        'clearhead generate "The capital of France is" -n 8 --show',
    ),
)
@click.argument("prompt", required=False)
@click.option("--file", "-f", type=click.Path(), help="Read the prompt from a file; - is stdin.")
@click.option("--max-tokens", "-n", type=int,
              help="Maximum number of tokens.  [default: the model's files, or 128]")  # fmt: skip
@sampling_options
@click.option(
    "--samples",
    type=int,
    default=1,
    show_default=True,
    help="Number of texts, generated side by side.",
)
@click.option("--show", is_flag=True,
              help="Print a line for each token: its probability, and alternatives.")  # fmt: skip
@click.option("--alternatives", type=int, metavar="N",
              help="With --show or --json: report the N likeliest tokens at each position.  "
              "[default: 4 with --show, or 0]")  # fmt: skip
@click.option(
    "--slide", is_flag=True, help="Drop the beginning of the text when the context is full."
)
@click.option("--json", "as_json", is_flag=True, help="Print one event per line, as JSON.")
@EIGHT_BITS
def command(
    prompt: str | None, file: str | None, model: str, engine: bool | None, as_json: bool,
    show: bool, alternatives: int | None, eight_bits: bool, **options: Any,
) -> None:  # fmt: skip
    """Continue PROMPT, a file (--file), or standard input from a pipe.

    Options that are not given come from the model's files, if those have them. Ctrl-C ends the
    text. On a terminal, characters that would command it are shown as signs; into a pipe or a file
    goes the text exactly as the model wrote it.
    """
    if show and as_json:
        raise click.UsageError("--show is for people, --json for programs: give one of them.")
    if alternatives and not (show or as_json):
        raise click.UsageError("--alternatives are printed with --show or --json: add one of them.")
    text = read_prompt(prompt, file)
    from clearhead.generation.generate import generate

    loaded = load_model(model)
    if alternatives is None:
        alternatives = ALTERNATIVES if show else 0
    events = generate(
        loaded, text, engine=engine, alternatives=alternatives, **options
    )  # bad arguments are refused before the wait
    prepare_engine(loaded, engine, eight_bits=eight_bits)
    if as_json:
        _show_json(events)
    elif show:
        show_tokens(first_awaited(events), loaded, options["samples"])
    elif options["samples"] > 1:
        _show_samples(events)
    else:
        if prompt is not None and sys.stdout.isatty():
            say(text, dim=True, nl=False)
        show_stream(events)


def read_prompt(prompt: str | None, file: str | None) -> str:
    """The prompt: an argument, a file or standard input, without the line break at its end."""
    if prompt is not None and file is not None:
        raise click.UsageError("give the prompt as an argument or with --file, not both.")
    source = prompt if file is None else file
    if source == "-" or (source is None and not sys.stdin.isatty()):
        return _decoded(sys.stdin.buffer.read(), "standard input").removesuffix("\n")
    if source is None:
        raise click.UsageError('a prompt is missing: clearhead generate "Students opened their"')
    if file is None:
        return source
    try:
        return _decoded(Path(file).read_bytes(), file).removesuffix("\n")
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}.") from None


def _decoded(raw: bytes, where: str) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise not_utf8(where, error) from None


def not_utf8(where: str, error: UnicodeDecodeError) -> InputError:
    """The error for text in another encoding."""
    return InputError(
        f"{where} is not UTF-8 text (byte {error.start}).", hint="convert it, e.g. with iconv."
    )


def show_stream(events: Generator[Event, None, None]) -> str:
    """Print the pieces as they come, and return what was printed; Ctrl-C ends it cleanly."""
    written: list[str] = []
    show = writer()
    try:
        for event in first_awaited(events):
            written.append(event.text)
            show(event.text)
    except KeyboardInterrupt:
        show("\n")
        raise
    finally:
        events.close()
    show("\n")
    return "".join(written)


def first_awaited(events: Generator[Event, None, None]) -> Generator[Event, None, None]:
    """The same events; the wait for the first one is announced if it is long."""
    with waiting("reading the prompt …"):
        first = next(events)
    yield first
    yield from events


def _show_json(events: Generator[Event, None, None]) -> None:
    try:
        for event in first_awaited(events):
            write_json(asdict(event))
    except KeyboardInterrupt:
        write_json({"text": "", "token": None, "finish": "interrupted"})
        raise


def _show_samples(events: Generator[Event, None, None]) -> None:
    """Texts that are written at the same time are shown whole, each when it ends."""
    texts: dict[int, str] = {}
    try:
        for event in first_awaited(events):
            texts[event.sample] = texts.get(event.sample, "") + event.text
            if event.finish is not None:
                write(f"── sample {event.sample} ──\n{texts.pop(event.sample)}")
    except KeyboardInterrupt:
        for sample, text in texts.items():
            write(f"── sample {sample}, interrupted ──\n{text}")
        raise
