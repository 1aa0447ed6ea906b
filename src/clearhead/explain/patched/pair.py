"""Pairs: two texts whose tokens stand in the same places, and the words that differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

from clearhead.arguments import about
from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.explain.marks import marks_of
from clearhead.explain.pictures import Mark
from clearhead.explain.why.prediction_run import (
    PredictionRun,
    Text,
    position_of,
    predicts,
    read_text,
    run_at,
)
from clearhead.explain.why.target import no_predictions
from clearhead.trace.passage import Passage


@dataclass(frozen=True, eq=False)
class Pair:
    """A text that is run, a donor whose outputs are put into it, and their words."""

    run: PredictionRun
    donor: PredictionRun
    columns: tuple[Mark, ...]  # the words of the text, up to the prediction
    others: tuple[str, ...]  # what stands there in the donor
    changed: tuple[int, ...]  # the columns whose tokens differ


def pair_of(loaded: Loaded, text: Text, donor: Text, position: int | str | None = None) -> Pair:
    """Run a model on two texts that align token by token."""
    if loaded.config.kind == "encoder-decoder":
        raise InputError("texts are patched in decoders and encoders; this is an encoder-decoder.")
    if not predicts(loaded):
        raise no_predictions(loaded)
    with about("text"):
        own = read_text(loaded, text)
    with about("donor"):
        other = read_text(loaded, donor)
    _check_aligned(own, other)
    place = position_of(loaded, own, position)
    run, given = run_at(loaded, own, place), run_at(loaded, other, place)
    columns = marks_of(run.passage, len(run.passage), words=True)
    changed = tuple(
        column for column, mark in enumerate(columns) if _ids(own, mark) != _ids(other, mark)
    )
    if not changed:
        raise InputError(
            "text and donor are the same up to the position of the prediction: there is nothing to "
            "patch.",
            hint="give two texts that differ in a word, and predict something behind it.",
        )
    others = tuple(_text_of(given.passage, mark) for mark in columns)
    return Pair(run, given, columns, others, changed)


def _ids(passage: Passage, mark: Mark) -> list[int]:
    return [passage.tokens[place].id for place in mark.tokens]


def _text_of(passage: Passage, mark: Mark) -> str:
    """What a passage has at the tokens of a mark of the other text."""
    marks = marks_of(passage, len(passage), words=True)
    same = next((one for one in marks if one.tokens == mark.tokens), None)
    if same is not None:
        return same.text
    tokens = marks_of(passage, len(passage), words=False)
    return "".join(tokens[place].text for place in mark.tokens)


def _check_aligned(text: Passage, donor: Passage) -> None:
    if len(text) == len(donor):
        return
    pairs = "; ".join(_uneven(text, donor))
    raise InputError(
        f"patching goes token by token, but the text has {len(text)} tokens and the donor "
        f"{len(donor)}{': ' if pairs else ''}{pairs}.",
        hint="choose words of as many tokens as each other (clearhead look --tokens shows them).",
    )


def _uneven(text: Passage, donor: Passage) -> Iterator[str]:
    """Where the two part: words that do not have as many tokens as those in their place."""
    words = [marks_of(passage, len(passage), words=True) for passage in (text, donor)]
    own, other = ([mark.text for mark in marks] for marks in words)
    for kind, *ends in SequenceMatcher(None, own, other, autojunk=False).get_opcodes():
        parts = [words[0][ends[0] : ends[1]], words[1][ends[2] : ends[3]]]
        many = [sum(len(mark.tokens) for mark in part) for part in parts]
        if kind != "equal" and many[0] != many[1]:
            yield " against ".join(map(_counted, parts, many))


def _counted(part: tuple[Mark, ...], many: int) -> str:
    if not part:
        return "nothing"
    return f"“{' '.join(mark.text for mark in part)}” ({many} token{'s' * (many != 1)})"
