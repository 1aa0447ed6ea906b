"""``ch.look``, ``ch.steps`` and ``ch.diff``: insight that shows itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from torch import nn

from clearhead.arguments import about, shown
from clearhead.attention.steps import AttentionSteps
from clearhead.checkpoints.load import Loaded, load
from clearhead.errors import InputError
from clearhead.explain.difference import make_difference
from clearhead.explain.look import Look
from clearhead.explain.make_look import make_look
from clearhead.explain.own_numbers.tables import (
    Numbers,
    key_matrix,
    table_of_keys,
    table_of_steps,
)
from clearhead.explain.pictures import Aids, Colour, HeadPicture, Hide, Measure, Pool
from clearhead.explain.worked_examples import EXAMPLES, worked_example
from clearhead.trace.seen import Seen
from clearhead.views.aids import checked_aids
from clearhead.views.shown import Shown, ShownDifference, ShownLook, ShownSteps

ModelLike: TypeAlias = Loaded | Seen | str | Path
Compared: TypeAlias = ModelLike | Look | HeadPicture | Shown[object]


def look(
    model: ModelLike,
    text: str | None = None,
    *,
    source: str | None = None,
    word: int | str | None = None,
    head: str | None = None,
    generate: int = 0,
    words: bool = True,
    hide: Hide = "first and special",
    colour: Colour = "linear",
    pool: Pool = "max",
    measure: Measure = "weight",
) -> ShownLook:
    """See where the words of a text look: which words every head attends to.

        >>> import clearhead as ch
        >>> look = ch.look("dates", "3rd of March 2021")
        >>> look.text, look.chosen_head
        ('2021-03-03', 'C0H1')
        >>> look.word("2021").sources[0].mark.text
        '2021'

    ``print(look)`` shows it, ``look.html(open=True)`` is the interactive page, and
    ``look.save("look.svg")`` writes a picture.

    Args:
        model: a model of ``ch.load``, or the name or path of one; what ``ch.watch`` saw of any
            torch model; or an opened trace.
        text: the text to read; a trace has its own. An encoder-decoder reads it with its encoder
            and writes by itself; with a ``source``, ``text`` is what its decoder reads.
        source: the text that an encoder-decoder's encoder reads.
        word: the word to show first: "they", "they#2" for the second one, or the number of its
            row. The most salient one unless given; ``.why`` says why.
        head: the head to show first: "L16H5", "L16" for a layer, "all". The most salient one
            unless given.
        generate: the number of tokens to write after the text, greedily; ``.generated`` has what
            each looked at.
        words: True merges the tokens of a word; False shows tokens.
        hide: the columns to leave out of pictures; their mass is still shown.
        colour: colours in proportion to weights, or to their logarithms.
        pool: the way in which several heads become one picture.
        measure: attention weights, or weights times the length of the value vectors.

    Returns:
        A look that shows itself; ``.head("L16H5")``, ``.word("they")``, ``.gallery()``,
        ``.steps()`` and ``.map()`` are its parts.

    Raises:
        InputError: the model, the text or an option is not one of those above; or the text has no
            such word, or the model no such head.
    """
    aids = checked_aids(words=words, hide=hide, colour=colour, pool=pool, measure=measure)
    made = make_look(
        _loaded(model), text, source=source, word=word, head=head, generate=generate, aids=aids
    )
    return ShownLook(made)


def steps(
    seen: ModelLike | Look | ShownLook | AttentionSteps | Numbers,
    head: str | Numbers | None = None,
    word: int | str | None = None,
    *,
    text: str | None = None,
    words: Sequence[str] | None = None,
    model: nn.Module | None = None,
) -> ShownSteps:
    """Show every step of one query, from q and k to the result, as a table.

        >>> import clearhead as ch
        >>> [round(row.weight, 2) for row in ch.steps("selfish").rows]
        [0.12, 0.87, 0.01, 0.0]
        >>> keys = [[1, 0, 1], [1, 0, -1], [-1, 1, 0], [-1, 0, 1]]  # one's own numbers
        >>> [row.score for row in ch.steps(keys, [2, 0, -1]).rows]
        [1.0, 3.0, -2.0, -3.0]

    Args:
        seen: a look or a trace; a model (or its name) with a ``text``; a worked example: "selfish",
            "batch" or "action"; the result of ``ch.attention_steps``; or keys, (key, key_dim),
            which are the values as well.
        head: the head, "L16H5"; the most salient one unless given. Of ``attention_steps`` with
            several heads "H3", the first unless given. With keys: the query, (key_dim).
        word: the word of the query, or the number of its row; the most salient one unless given, of
            ``attention_steps`` the last.
        text: the text that a model reads.
        words: the words of the keys, for ``attention_steps`` and keys.
        model: the torch model that was watched: with it the table goes on through W_O.

    Returns:
        The step table, which shows itself; ``.rows`` has a row for each key.

    Raises:
        InputError: there is no such worked example, head or word; numbers that are none.
        ShapeError: a query and keys, or words and keys, do not fit each other.
    """
    if isinstance(seen, AttentionSteps):
        _unused("attention_steps has all numbers already", text=text, model=model)
        return ShownSteps(table_of_steps(seen, words, _head_name(head), word))
    if not isinstance(seen, str | Path | Loaded | Seen | Look | ShownLook):
        with about("seen"):
            keys = key_matrix(seen)
        _unused("seen holds keys, which have a query alone", text=text, model=model, word=word)
        return ShownSteps(table_of_keys(keys, head, words))
    _unused("a text has its own words", words=words)
    head = _head_name(head)
    if isinstance(seen, str) and (text is None or seen in EXAMPLES):
        _unused(
            "a worked example has its own numbers", head=head, word=word, text=text, model=model
        )
        return ShownSteps(worked_example(seen)[0])
    found = seen.insight if isinstance(seen, ShownLook) else seen
    if isinstance(found, Look):
        _unused("a look has its text and its model already", text=text, model=model)
    elif isinstance(found, Seen) and model is not None:
        _unused("a trace has its text already", text=text)
        found = Look(found, head=head, word=word, model=_module(model))
    else:
        _unused("only a trace needs its model", model=model)
        found = make_look(_loaded(found), text, head=head, word=word)
    return ShownSteps(found.steps(head, word))


def diff(
    before: Compared,
    after: Compared,
    *,
    text: str | None = None,
    head: str | None = None,
    words: bool = True,
    hide: Hide = "first and special",
    colour: Colour = "linear",
    pool: Pool = "max",
    measure: Measure = "weight",
) -> ShownDifference:
    """Show what changed most between two looks, two heads, two models or two traces.

        >>> import clearhead as ch
        >>> look = ch.look("dates", "3rd of March 2021")
        >>> found = ch.diff(look.head("C0H0"), look.head("C0H1"))  # two heads
        >>> found.before, found.after
        ('C0H0', 'C0H1')

    Args:
        before: a look, a head of one (``look.head("L16H5")``), a model (or its name) or a trace.
        after: the same kind of thing.
        text: the text that two models read.
        head: compare only this head of two models or traces.
        words: as in ``ch.look``, and so are the other options: for models and traces.
        hide: the columns to leave out of lists.
        colour: colours in proportion to weights, or to their logarithms.
        pool: the way in which several heads become one picture.
        measure: attention weights, or weights times the length of the value vectors.

    Returns:
        The difference, which shows itself: ``.heads``, ``.words`` and ``.changes``, the largest
        first.

    Raises:
        InputError: the two cannot be compared: a look with a head, models without a text, texts
            without a common word.
    """
    aids = checked_aids(words=words, hide=hide, colour=colour, pool=pool, measure=measure)
    sides = [_comparable(given, text) for given in (before, after)]
    if not any(isinstance(side, Loaded) for side in sides):
        _unused("only models read a text, and traces and looks have theirs", text=text)
    if not any(isinstance(side, Loaded | Seen) for side in sides):
        _unused("looks and heads are compared as they are", head=head)
    first, second = (_side(side, text, head, aids) for side in sides)
    names = [side.name if isinstance(side, Loaded) else "" for side in sides]
    return ShownDifference(make_difference(first, second, names=(names[0], names[1])))


def _head_name(head: object) -> str | None:
    if head is None or isinstance(head, str):
        return head
    raise InputError(f"head is the name of a head, such as L16H5; got {shown(head)}.")


def _module(model: object) -> nn.Module:
    if isinstance(model, nn.Module):
        return model
    raise InputError(f"model is the torch model that was watched; got {shown(model)}.")


def _unused(reason: str, **arguments: object) -> None:
    """Refuse arguments that would change nothing."""
    for name, given in arguments.items():
        if given is not None:
            raise InputError(f"{name} has no use here: {reason}; got {shown(given)}.")


def _loaded(given: object) -> object:
    """A name or path as the model that it stands for; everything else as it is."""
    return load(given) if isinstance(given, str | Path) else given


def _comparable(given: object, text: str | None) -> Look | HeadPicture | Loaded | Seen:
    found = given.insight if isinstance(given, Shown) else given
    if isinstance(found, Loaded | str | Path) and text is None:
        raise InputError("two models are compared on a text: ch.diff(one, other, text=…).")
    found = _loaded(found)
    if not isinstance(found, Look | HeadPicture | Loaded | Seen):
        raise InputError(
            f"diff compares looks, heads, models or traces; got {type(found).__name__}.",
            hint="two texts: ch.diff(ch.look(model, one), ch.look(model, other)).",
        )
    return found


def _side(
    given: Look | HeadPicture | Loaded | Seen, text: str | None, head: str | None, aids: Aids
) -> Look | HeadPicture:
    if isinstance(given, Look | HeadPicture):
        return given
    return make_look(given, text if isinstance(given, Loaded) else None, head=head, aids=aids)
