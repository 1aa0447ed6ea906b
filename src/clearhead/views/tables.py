"""The numbers of an insight as CSV and as JSON: exactly those that the pictures show."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, repeat
from typing import Any

import numpy as np

from clearhead.errors import InputError, NotFiniteError
from clearhead.explain.difference import Difference
from clearhead.explain.lens import Lens
from clearhead.explain.look import Look
from clearhead.explain.pictures import Gallery, HeadPicture, WordPicture, shown_numbers
from clearhead.explain.predictions import (
    Prediction,
    Predictions,
    has_predictions,
    predictions_of,
    readable,
)
from clearhead.explain.step_table import StepTable
from clearhead.trace.missed import tells_missed
from clearhead.views.escape import plain_json
from clearhead.visible import visible_text

# A cell that begins with one of these is a formula to spreadsheet programs.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")

Rows = Iterator[list[Any]]
LISTED = 5  # likeliest tokens of each position in the tables of a look


def csv_text(insight: object) -> str:
    """One line for each number that is shown, with a heading. Of an incomplete watch, a last column
    says in the first of them what it missed."""
    rows = CSV.get(type(insight))
    if rows is None:
        raise _no_table("CSV", insight, CSV)
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    missed = " ".join(note for note in getattr(insight, "notes", ()) if tells_missed(note))
    column = chain(["not_watched", missed], repeat(""))
    for row, said in zip(rows(insight), column, strict=False):
        writer.writerow([_cell(value) for value in ([*row, said] if missed else row)])
    return written.getvalue()


def json_text(insight: object) -> str:
    """The whole insight: its fields by their names, words as objects."""
    if type(insight) not in CSV:
        raise _no_table("JSON", insight, CSV)
    if isinstance(insight, Look):
        shown = _plain(insight.head()) | {"predictions": _plain(_said(insight))}
    else:
        shown = _plain(insight)
    content = {"insight": type(insight).__name__} | shown
    return plain_json(json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False)) + "\n"


def _head(picture: HeadPicture) -> Rows:
    hidden = set(picture.hidden)
    number = picture.aids.measure
    yield ["head", "row", "row_word", "column", "column_word", number, "masked", "hidden"]
    for (row, column), weight in np.ndenumerate(picture.weights):
        seen = bool(picture.visible[row, column])
        yield [
            picture.head, row, picture.rows[row].text, column, picture.columns[column].text,
            _number(weight), not seen, column in hidden,
        ]  # fmt: skip


def _word(picture: WordPicture) -> Rows:
    strongest = {source.column: source for source in picture.sources}
    yield ["row", "row_word", "column", "column_word", "strength", "strongest_head", "hidden"]
    for column, mark in enumerate(picture.marks):
        source = strongest.get(column)
        head = picture.head or (source.head if source else "")
        strength = _number(picture.strengths[column])
        hidden = column in picture.hidden
        yield [picture.row, picture.mark.text, column, mark.text, strength, head, hidden]


def _gallery(gallery: Gallery) -> Rows:
    yield ["head", "salience", "cell_row", "cell_column", "weight"]
    for layer, names in enumerate(gallery.names):
        for head, name in enumerate(names):
            salience = gallery.salience[layer][head]
            for (row, column), weight in np.ndenumerate(gallery.maps[layer, head]):
                yield [name, salience, row, column, _number(weight)]


def _steps(table: StepTable) -> Rows:
    heading = ["word", "score", "scaled", "capped", "bias", "masked", "weight"]
    widths = [max((len(getattr(row, part)) for row in table.rows), default=0) for part in _PARTS]
    for part, width in zip(_PARTS, widths, strict=True):
        heading += [f"{part}_{place}" for place in range(width)]
    yield heading
    for row in table.rows:
        numbers = [number for part in _PARTS for number in getattr(row, part)]
        yield [
            row.word, row.score, row.scaled, _or_empty(row.capped), _or_empty(row.bias),
            row.masked, row.weight, *numbers,
        ]  # fmt: skip


_PARTS = ("key", "value", "weighted")


def _difference(difference: Difference) -> Rows:
    yield ["what", "head", "before", "after", "column_before", "column_after", "number", "other"]
    for head in difference.heads:
        yield ["head", head.before, head.before, head.after, "", "", head.distance, ""]
    for word in difference.words:
        yield [
            "word", word.head, word.before.text, word.after.text, "", "", word.distance, "",
        ]  # fmt: skip
    for cell in difference.changes:
        yield [
            "weight", cell.head, cell.row.text, cell.other_row.text,
            "" if cell.column is None else cell.column.text,
            "" if cell.other_column is None else cell.other_column.text, cell.before, cell.after,
        ]  # fmt: skip


def _prediction(prediction: Prediction) -> Rows:
    yield ["word", "token", "id", "logit", "probability", "rank", "came"]
    came = prediction.came
    tokens = list(prediction.likeliest)
    if came is not None and came.id not in {token.id for token in tokens}:
        tokens.append(came)
    for token in tokens:
        yield [
            prediction.mark.text, token.text, token.id, token.logit, token.probability, token.rank,
            came is not None and token.id == came.id,
        ]  # fmt: skip


PREDICTED = [
    "position", "after", "token", "id", "logit", "probability", "rank", "came", "surprise_bits",
]  # fmt: skip


def _predictions(predictions: Predictions) -> Rows:
    """A line for each of the likeliest tokens of a position, and for the one that came."""
    yield PREDICTED
    for one in predictions.all:
        after, came = predictions.tokens[one.position], one.came
        tokens = one.likeliest if came is None else (*one.others, came)
        for token in sorted(tokens, key=lambda token: token.rank):
            is_came = came is not None and token.id == came.id
            surprise = _or_empty(one.surprise if is_came else None)
            yield [
                one.position, after, token.text, token.id, token.logit, token.probability,
                token.rank, is_came, surprise,
            ]  # fmt: skip


def _look(look: Look) -> Rows:
    """The weights of the chosen head, and the predictions, in one table."""
    weights = list(_head(look.head()))
    yield ["what", *weights[0], *PREDICTED]
    for row in weights[1:]:
        yield ["weight", *row, *[""] * len(PREDICTED)]
    predictions = _said(look)
    for row in [] if predictions is None else list(_predictions(predictions))[1:]:
        yield ["prediction", *[""] * len(weights[0]), *row]


def _said(look: Look) -> Predictions | None:
    """The predictions, with a few tokens for each position; None where there are none."""
    try:
        return predictions_of(*readable(look)).top(LISTED) if has_predictions(look) else None
    except NotFiniteError:
        return None


def _lens(lens: Lens) -> Rows:
    yield ["layer", "word", "token", "id", "probability", "final_probability", "final"]
    for (layer, column), id in np.ndenumerate(lens.ids):
        yield [
            f"L{layer}", lens.marks[column].text, lens.tokens[layer][column], int(id),
            _number(lens.probabilities[layer, column]), _number(lens.final[layer, column]),
            bool(layer >= lens.appears[column]),
        ]  # fmt: skip


CSV: dict[type, Callable[[Any], Rows]] = {
    HeadPicture: _head,
    WordPicture: _word,
    Gallery: _gallery,
    StepTable: _steps,
    Difference: _difference,
    Look: _look,
    Predictions: _predictions,
    Prediction: _prediction,
    Lens: _lens,
}


def _or_empty(number: float | None) -> float | str:
    return "" if number is None else number


def _number(number: Any) -> float:
    """A float32 as the short decimal that it stands for."""
    return round(float(number), 4)


def _cell(value: Any) -> Any:
    """Texts that a spreadsheet would run as formulas get an apostrophe, as it expects."""
    if isinstance(value, str):
        text = visible_text(value)
        return f"'{text}" if value.startswith(_FORMULA) else text
    return str(value).lower() if isinstance(value, bool) else value


def _plain(value: Any) -> Any:
    """Dataclasses as objects, arrays as lists; halves of surrogate pairs, which no file holds, as
    �."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [field for field in dataclasses.fields(value) if field.repr]
        kept = [field.name for field in fields if not callable(getattr(value, field.name))]
        return {name: _plain(getattr(value, name)) for name in kept}
    if isinstance(value, np.ndarray):
        return _plain(shown_numbers(value).tolist() if value.dtype.kind == "f" else value.tolist())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(part) for part in value]
    if isinstance(value, np.floating | float):
        return round(float(value), 10) if np.isfinite(value) else None
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    return value if isinstance(value, bool | int | type(None)) else str(value)


def _no_table(what: str, insight: object, known: dict[type, Any]) -> InputError:
    names = ", ".join(kind.__name__ for kind in known)
    return InputError(
        f"{what} holds the numbers of one of {names}; {type(insight).__name__} came.",
        hint="look.head() and look.word() give one.",
    )
