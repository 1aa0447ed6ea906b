"""``clearhead diff``: compares two texts, two heads, two models or two traces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from clearhead.cli.checking import checked_model
from clearhead.cli.help_texts import MODEL_OR_DEFAULT, SectionedCommand, examples
from clearhead.cli.loading import measuring, waiting
from clearhead.cli.looking_options import (
    aid_options,
    aids_of,
    model_of,
    opened,
    output_options,
    show_or_write,
    text_of,
)

if TYPE_CHECKING:
    from clearhead.trace.seen import Seen


@click.command(
    "diff",
    cls=SectionedCommand,
    short_help="Compare two texts, heads, models or traces.",
    epilog=examples(
        'clearhead diff "He fed his dog." "She fed her dog."',
        'clearhead diff --patch "The capital of France is" "The capital of Italy is"',
        'clearhead diff "A text." --other-model ./trained',
        'clearhead diff "A text." --head L16H5 --other-head L16H3',
    ),
)
@click.argument("text", metavar="TEXT|FILE")
@click.argument("other", metavar="[OTHER]", required=False)
@click.option("--model", "-m", callback=checked_model, help=MODEL_OR_DEFAULT)
@click.option("--other-model", callback=checked_model, help="The second model, on the same text.")
@click.option("--head", help="Compare only this head, such as L16H5.")
@click.option("--other-head", help="The second head, such as L16H3.")
@click.option("--patch", is_flag=True, help="Show which words, layers and heads carry the answer: "
              "each is taken from OTHER, one at a time.")  # fmt: skip
@click.option("--token", "-t", help="With --patch: the answer of TEXT, with its space: ' Paris'. "
              "Default: the likeliest.")  # fmt: skip
@click.option("--instead", "-i", help="With --patch: the answer of OTHER.")
@click.option("--position", "-p", help="With --patch: the word whose prediction is measured. "
              "Default: the last.")  # fmt: skip
@aid_options
@output_options
def command(text: str, other: str | None, **options: Any) -> None:
    """Show where attention differs most between TEXT and OTHER.

    Compare two texts or two saved traces; or one text with --other-model or --other-head. With
    --patch, two texts that differ in a word: which heads and positions carry the answer.
    """
    _check_patch(options)
    if options["patch"]:
        if other is None:
            raise click.UsageError("--patch takes two texts; the second is missing.")
        show_or_write(_patched(text_of(text), text_of(other), options), options)
        return
    if other is None and options["other_model"] is None and options["other_head"] is None:
        raise click.UsageError("a second text, --other-model or --other-head is missing.")
    sources = [opened(given) or text_of(given) for given in (text, other or text)]
    from clearhead.views.looking import diff

    before = _side(sources[0], options["model"], options["head"], options)
    model, head = options["other_model"] or options["model"], options["other_head"]
    after = _side(sources[1], model, head or options["head"], options)
    if head is not None:
        before, after = before.head(), after.head()
    with waiting("comparing …"):
        found = diff(before, after)
    show_or_write(found, options)


def _check_patch(options: dict[str, Any]) -> None:
    """Refuse options that belong to the other kind of comparison."""
    if options["patch"]:
        wrong = [name for name in ("other_model", "head", "other_head") if options[name]]
        if wrong:
            raise click.UsageError(f"--{wrong[0].replace('_', '-')} has no use with --patch.")
    else:
        for name in ("token", "instead", "position"):
            if options[name] is not None:
                raise click.UsageError(f"--{name} is for --patch.")


def _patched(text: str, other: str, options: dict[str, Any]) -> Any:
    from clearhead.views.patched.shown import patch_map

    loaded = model_of(options["model"])
    chosen = {name: options[name] for name in ("token", "instead", "position")}
    with measuring("patching …") as progress:
        return patch_map(loaded, text, other, progress=progress, **chosen)


def _side(source: Seen | str, model: str | None, head: str | None, options: dict[str, Any]) -> Any:
    from clearhead.views.looking import look

    loaded = model_of(model) if isinstance(source, str) else None
    with waiting("looking …"):
        if loaded is None:
            return look(source, head=head, **aids_of(options))
        return look(loaded, str(source), head=head, **aids_of(options))
