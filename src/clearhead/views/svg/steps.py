"""The step table as a picture: the same columns as in the terminal."""

from __future__ import annotations

from collections.abc import Callable

from clearhead.explain.step_table import StepRow, StepTable
from clearhead.views.numbers import number_text, query_text, vector_text, weight_text
from clearhead.views.svg.parts import (
    INK,
    LINE,
    MARGIN,
    QUIET,
    TINT,
    Drawing,
    draw_notes,
    shortened,
    text_width,
)

SHOWN = 3  # entries of a vector
MOST_ROWS = 40
ROW = 24.0
GAP = 26.0

Column = tuple[str, Callable[[StepRow], str], str]  # heading, cell, foot


def draw_steps(table: StepTable) -> str:
    """The whole picture."""
    drawing = Drawing()
    rows, columns = _rows(table), _columns(table)
    widths = [_width(column, rows) for column in columns]
    width = max(sum(widths) + GAP * len(widths) + 2 * MARGIN, 420.0)
    drawing.text(MARGIN, MARGIN + 14, table.title, size=18, bold=True)
    drawing.text(MARGIN, MARGIN + 42, query_text(table, shortened(table.word, 24)), size=13)
    y = MARGIN + 78
    _draw_line(drawing, [column[0] for column in columns], widths, y, fill=QUIET)
    drawing.path(f"M{MARGIN},{y + 8:.5g}H{width - MARGIN:.5g}", LINE)
    strongest = max((row.weight for row in table.rows), default=0.0)
    for row in rows:
        y += ROW
        best = row.weight == strongest
        if best:
            drawing.rect(MARGIN - 6, y - 16, width - 2 * MARGIN + 12, ROW - 1, TINT, 5)
        _draw_line(drawing, [column[1](row) for column in columns], widths, y, bold=best)
    drawing.path(f"M{MARGIN},{y + 8:.5g}H{width - MARGIN:.5g}", LINE)
    y += ROW
    _draw_line(drawing, [column[2] for column in columns], widths, y, bold=True)
    y = draw_notes(drawing, _notes(table, rows), MARGIN, y + 30, width - 2 * MARGIN)
    return drawing.svg(width, y + 8, table.title)


def _rows(table: StepTable) -> list[StepRow]:
    """All words; of a long text the strongest, in the order of the text."""
    if len(table.rows) <= MOST_ROWS:
        return list(table.rows)
    order = sorted(range(len(table.rows)), key=lambda place: -table.rows[place].weight)
    return [table.rows[place] for place in sorted(order[:MOST_ROWS])]


def _columns(table: StepTable) -> list[Column]:
    same = all(row.key == row.value for row in table.rows)  # the keys are the values
    valued = any(row.value for row in table.rows)
    total = sum(row.weight for row in table.rows) + (table.sink.weight if table.sink else 0.0)
    columns: list[Column] = [("Word", lambda row: shortened(row.word, 20), "sum")]
    columns.append(("k = v" if same else "k", lambda row: vector_text(row.key, SHOWN), ""))
    if valued and not same:
        columns.append(("v", lambda row: vector_text(row.value, SHOWN), ""))
    steps: list[tuple[str, Callable[[StepRow], float | None]]] = [("score", lambda row: row.score)]
    if table.scale != 1.0:
        steps.append((table.scale_name, lambda row: row.scaled))
    if table.softcap is not None:
        steps.append((f"cap {number_text(table.softcap)}", lambda row: row.capped))
    if table.has_bias:
        steps.append(("+ bias", lambda row: row.bias))
    for place, (name, number) in enumerate(steps):
        columns.append((name, _score(number, place == len(steps) - 1), ""))
    columns.append(("softmax", lambda row: weight_text(row.weight), weight_text(total)))
    if valued:
        weighted: Callable[[StepRow], str] = lambda row: vector_text(row.weighted, SHOWN)  # noqa: E731
        columns.append(("softmax·v", weighted, vector_text(table.output, SHOWN)))
    return columns


def _score(number: Callable[[StepRow], float | None], last: bool) -> Callable[[StepRow], str]:
    """A score as text; the last one before softmax becomes −∞ where the query may not look."""

    def cell(row: StepRow) -> str:
        if last and row.masked:
            return f"−∞ {row.masked}"
        found = number(row)
        return "" if found is None else number_text(found)

    return cell


def _width(column: Column, rows: list[StepRow]) -> float:
    heading, cell, foot = column
    return max(text_width(text, 13) for text in (heading, foot, *map(cell, rows)))


def _draw_line(
    drawing: Drawing,
    cells: list[str],
    widths: list[float],
    y: float,
    *,
    fill: str = INK,
    bold: bool = False,
) -> None:
    x = MARGIN
    for place, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        right = place > 0
        at = x + width if right else x
        drawing.text(at, y, cell, anchor="end" if right else "start", fill=fill, bold=bold)
        x += width + GAP


def _notes(table: StepTable, rows: list[StepRow]) -> tuple[str, ...]:
    notes = []
    if len(rows) < len(table.rows):
        notes.append(f"The {len(rows)} strongest of {len(table.rows)} words; the sum is over all.")
    if table.sink is not None:
        score, weight = number_text(table.sink.score), weight_text(table.sink.weight)
        notes.append(f"A sink with score {score} takes {weight} of the softmax.")
    if len(table.query) > SHOWN:
        notes.append(f"Vectors have {len(table.query)} numbers; the first are shown.")
    proof = () if table.proof is None else (str(table.proof),)
    return (*notes, *table.notes, *proof)
