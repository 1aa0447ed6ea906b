"""``clearhead heads``: the role of each head of a model, with evidence."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clearhead.cli.checking import checked_model
from clearhead.cli.help_texts import DEFAULT_MODEL, MODEL, SectionedCommand, examples
from clearhead.cli.loading import PATIENCE, load_model
from clearhead.cli.looking_options import (
    FILES,
    output_options,
    show_or_write,
    try_next,
)
from clearhead.cli.printing import console, say
from clearhead.errors import InputError

if TYPE_CHECKING:
    from clearhead.checkpoints.load import Loaded
    from clearhead.explain.roles.counting import Progress
    from clearhead.views.roles.shown import ShownRoles


HEAD = re.compile(r"([A-Z])(\d+)H(\d+)")
COUNTED = ("model", "properties", "words", "layers", "spacy")  # options that the counts depend on
KEPT = 8  # files of counts, some megabytes each


@click.command(
    "heads",
    cls=SectionedCommand,
    short_help="Find the role of each head of a model, with evidence.",
    epilog=examples(
        "clearhead heads",
        "clearhead heads --model minilm --html heads.html",
        "clearhead heads corpus.conllu --head L16H5",
    ),
)
@click.argument("corpus", metavar="[CORPUS]", required=False)
@click.option("--model", "-m", default=DEFAULT_MODEL, show_default=True,
              callback=checked_model, help=MODEL)  # fmt: skip
@click.option("--head", help="Show one head with its examples, such as L16H5.")
@click.option("--property", "-p", "properties", multiple=True, metavar="NAME",
              help="Test only this property, such as 'rarest word'. May be repeated.")  # fmt: skip
@click.option("--words", metavar="WORDS", help="Test these words or phrases too: lion,the sea.")
@click.option("--layers", metavar="NUMBERS", help="Test only these layers: 0,1,5.")
@click.option("--spacy", metavar="PIPELINE", help="Annotate plain text with this spaCy pipeline, "
              "such as en_core_web_sm.")  # fmt: skip
@click.option("--ablate", type=click.IntRange(min=0), default=6, show_default=True,
              metavar="N",
              help="Ablate the best heads of N roles, and measure the change.")  # fmt: skip
@click.option("--all", "everything", is_flag=True, help="Show every role in the table.")
@click.option("--fresh", is_flag=True, help="Count and ablate again instead of using the cache.")
@output_options
def command(corpus: str | None = None, **options: Any) -> None:
    """Find the role of each head of a model, with evidence, or report that none was found.

    CORPUS is a .conllu file, a .tsv of coreference (text, pronoun, antecedent), or plain text.
    Without CORPUS, a built-in text is used. Counts and ablations are cached: an interrupted run
    continues, and another view of the same counts is quick. With torchrun, each process counts a
    share of the sentences.
    """
    from clearhead.explain.roles.processes import process_share

    with process_share() as share:
        shown = _found(corpus, options, share)
        if share[0] == 0:
            _show(shown, options, corpus)


def _found(corpus: str | None, options: dict[str, Any], share: tuple[int, int]) -> ShownRoles:
    from clearhead.views.roles.shown import roles

    _check(corpus, options)
    properties, layers = _properties(options), _layers(options["layers"])
    keep = _counts_file(corpus, options, share)
    loaded = load_model(options["model"])
    _check_head(options["head"], loaded)
    try:
        with _bars(shown=share[0] == 0) as progress:
            return roles(
                loaded,
                None if corpus is None else Path(corpus),
                properties=properties,
                layers=layers,
                spacy=options["spacy"],
                interventions=options["ablate"],
                keep=keep,
                share=share,
                progress=progress,
            )
    except KeyboardInterrupt:
        if keep.exists() and share[0] == 0:
            say("The counts so far are cached: the same command continues from there.", err=True)
        raise


def _check(corpus: str | None, options: dict[str, Any]) -> None:
    """Check what can be checked before a model is loaded."""
    if corpus is not None and not Path(corpus).exists():
        raise InputError(
            f"there is no file {corpus!r}.",
            hint="a corpus is a .conllu file, a .tsv of coreference, or a text file.",
        )
    if options["head"] is not None and not HEAD.fullmatch(options["head"]):
        raise InputError(f"a head is written L16H5: layer 16, head 5; {options['head']!r} came.")


def _check_head(head: str | None, loaded: Loaded) -> None:
    """Refuse a head that the model does not have, before anything is counted."""
    if head is None:
        return
    name = HEAD.fullmatch(head)
    assert name is not None
    config = loaded.config
    letter = "L" if config.encoder_layers is None else "E"  # of an encoder-decoder the encoder
    layers = config.encoder_layers or config.layers
    if name[1] != letter or int(name[2]) >= layers or int(name[3]) >= config.heads:
        raise InputError(
            f"{loaded.name} has no head {head}: its heads are {letter}0H0 … "
            f"{letter}{layers - 1}H{config.heads - 1}."
        )


def _counts_file(corpus: str | None, options: dict[str, Any], share: tuple[int, int]) -> Path:
    """The file that caches the counts of these options; only the newest files are kept."""
    from clearhead.checkpoints.store.cache_folder import cache_folder

    work = [corpus and str(Path(corpus).resolve()), *(options[name] for name in COUNTED), share]
    name = hashlib.blake2b(repr(work).encode(), digest_size=8).hexdigest()
    keep = cache_folder() / "roles" / f"{name}.counts"
    if options["fresh"]:
        _forget(keep)
    if share == (0, 1):
        others = sorted(keep.parent.glob("*.counts"), key=lambda path: -path.stat().st_mtime)
        for path in others[KEPT:]:
            _forget(path)
    return keep


def _forget(counts: Path) -> None:
    """Delete a file of counts, and the effects beside it."""
    from clearhead.explain.roles.counts.effect_cache import effects_path

    for path in (counts, effects_path(counts)):
        path.unlink(missing_ok=True)


def _properties(options: dict[str, Any]) -> list[Any] | None:
    """The properties that the options name; None for all built-in ones."""
    from clearhead.explain.roles.built_in_properties import BUILT_IN, given_words

    chosen: list[Any] = list(options["properties"]) or list(BUILT_IN)
    if options["words"]:
        chosen.append(given_words(options["words"].split(",")))
    return chosen if chosen != list(BUILT_IN) else None


def _layers(given: str | None) -> list[int] | None:
    if given is None:
        return None
    numbers = given.replace("L", "").split(",")
    if not all(number.strip().isdecimal() for number in numbers):
        raise InputError(f"layers are numbers between commas, such as 0,1,5; {given!r} came.")
    return [int(number) for number in numbers]


def _show(shown: ShownRoles, options: dict[str, Any], corpus: str | None) -> None:
    from rich.console import Group

    from clearhead.views.roles.terminal import SHOWN, evidence_parts, roles_parts

    if any(options.get(name) is not None for name in FILES) or options.get("open_page"):
        show_or_write(shown, options)
        return
    terminal = console()
    if options["head"] is not None:
        evidence = shown.insight.evidence(options["head"])
        terminal.print(Group(*evidence_parts(evidence, terminal.width)))
        return
    most = None if options["everything"] else SHOWN
    terminal.print(Group(*roles_parts(shown.insight, terminal.width, most)))
    arguments = "" if corpus is None else f" {corpus}"
    arguments += "" if options["model"] == DEFAULT_MODEL else f" --model {options['model']}"
    first = next((role.head for role in shown.insight.named if role.kind != "rest"), "L0H0")
    try_next(
        f"heads{arguments} --head {first}      its examples, in their sentences",
        f"heads{arguments} --html heads.html      everything, to click through",
        "heads your.conllu      your own annotated text; --model minilm another model",
    )


@contextmanager
def _bars(*, shown: bool) -> Iterator[Callable[[str], Progress]]:
    """Progress bars with the time left, on standard error."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    terminal = console(err=True)
    columns = (
        TextColumn("{task.description}", markup=False), BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"), TimeRemainingColumn(),
    )  # fmt: skip
    hidden = not shown or not terminal.is_terminal
    with Progress(*columns, console=terminal, transient=True, disable=hidden) as bars:
        began = time.monotonic()

        def begin(what: str) -> Callable[[int, int | None], None]:
            task = bars.add_task(what, total=None)
            if hidden and shown:
                say(f"{what} … ({time.monotonic() - began:.0f} s)", err=True)

            started, told = time.monotonic(), False

            def update(done: int, total: int | None) -> None:
                nonlocal told
                bars.update(task, completed=done, total=total)
                spent = time.monotonic() - started
                if hidden and shown and not told and total and done and spent > PATIENCE:
                    told = True
                    left = spent / done * (total - done)
                    say(f"{what}: about {left:.0f} s left", err=True)

            return update

        yield begin
