"""The step table as a page: every query, every step, vectors whole; then Z and W_O.

It needs no script: a query is chosen by a radio button; a long vector opens by a click. On narrow
screens each row becomes a card, so cells bear their heading.
"""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

from clearhead.explain.head_outputs import HeadOutputs
from clearhead.explain.step_table import StepRow, StepTable, Vector
from clearhead.views.escape import markup_text
from clearhead.views.numbers import number_text, vector_text, weight_text
from clearhead.views.page.files import style
from clearhead.views.page.static import header, script

WHOLE = 8  # entries of a vector that are always shown


def steps_fragment(table: StepTable) -> str:
    """The page as one element."""
    tables = table.queries() if table.queries is not None else (table,)
    chosen = next((n for n, one in enumerate(tables) if one.query == table.query), 0)
    return (
        f'<style>{style("view.css")}</style>\n<div class="clearhead" data-static>'
        f'<main class="static steps-page">{header("step by step", table.model)}'
        f"<h1>{markup_text(table.title)}</h1>{_choice(tables, chosen)}</main></div>{script()}"
    )


def _choice(tables: Sequence[StepTable], chosen: int) -> str:
    if len(tables) == 1:
        return f'<section class="card">{_panel(tables[0])}</section>'
    parts = []
    group = f"q{crc32(repr((tables[0].title, tables[chosen].query)).encode()):x}"
    for number, table in enumerate(tables):
        checked = " checked" if number == chosen else ""
        parts.append(
            f'<input type="radio" name="{group}" id="{group}-{number}" class="pick" '
            f'data-choice="query" value="{number}"{checked}>'
            f'<label for="{group}-{number}" dir="auto">{markup_text(table.word)}</label>'
            f'<section class="card panel">{_panel(table)}</section>'
        )
    return f'<p class="quiet">Which query:</p><div class="queries">{"".join(parts)}</div>'


def _panel(table: StepTable) -> str:
    notes = [*table.notes, *([] if table.proof is None else [str(table.proof)])]
    listed = "".join(f"<li>{markup_text(note)}</li>" for note in notes)
    outputs = "" if table.outputs is None else _outputs(table.outputs, table.head)
    return (
        f"<p>q of “{markup_text(table.word)}” = {_vector(table.query)}</p>"
        f'<div class="table-scroll"><table>{_heading(table)}<tbody>'
        f"{''.join(_row(table, row) for row in table.rows)}{_sink(table)}</tbody>"
        f"{_foot(table)}</table></div>{outputs}<footer><ul>{listed}</ul></footer>"
    )


def _names(table: StepTable) -> list[str]:
    names = ["word", "k", *(["v"] if _values(table) else []), "score = q·k"]
    names += [table.scale_name] if table.scale != 1.0 else []
    names += [f"cap {number_text(table.softcap)}"] if table.softcap is not None else []
    names += ["+ bias"] if table.has_bias else []
    return [*names, "softmax", *(["softmax·v"] if _values(table) else [])]


def _values(table: StepTable) -> bool:
    return any(row.value for row in table.rows)


def _heading(table: StepTable) -> str:
    cells = "".join(f'<th scope="col">{markup_text(name)}</th>' for name in _names(table))
    return f"<thead><tr>{cells}</tr></thead>"


def _row(table: StepTable, row: StepRow) -> str:
    numbers = [number_text(row.score)]
    numbers += [number_text(row.scaled)] if table.scale != 1.0 else []
    if table.softcap is not None:
        numbers.append("" if row.capped is None else number_text(row.capped))
    if table.has_bias:
        numbers.append("" if row.bias is None else number_text(row.bias))
    if row.masked:
        numbers[-1] = f"−∞ {row.masked}"
    vectors = [_vector(row.key), *([_vector(row.value)] if _values(table) else [])]
    cells = [*vectors, *map(markup_text, numbers), weight_text(row.weight)]
    cells += [_vector(row.weighted)] if _values(table) else []
    strongest = max(one.weight for one in table.rows)
    kind = ' class="marked"' if row.weight == strongest else ""
    return (
        f'<tr{kind}><th scope="row" dir="auto">{markup_text(row.word)}</th>'
        + "".join(_cell(name, cell) for name, cell in zip(_names(table)[1:], cells, strict=True))
        + "</tr>"
    )


def _cell(name: str, content: str) -> str:
    return f'<td class="number" data-label="{markup_text(name)}">{content}</td>'


def _sink(table: StepTable) -> str:
    if table.sink is None:
        return ""
    empty = "<td></td>" * (len(_names(table)) - 3 - _values(table))
    return (
        f'<tr><th scope="row">sink</th>{empty}{_cell("score", number_text(table.sink.score))}'
        f"{_cell('softmax', weight_text(table.sink.weight))}"
        f"{'<td></td>' if _values(table) else ''}</tr>"
    )


def _foot(table: StepTable) -> str:
    total = sum(row.weight for row in table.rows) + (table.sink.weight if table.sink else 0.0)
    empty = "<td></td>" * (len(_names(table)) - 2 - _values(table))
    output = _cell("softmax·v", _vector(table.output)) if _values(table) else ""
    return (
        f'<tfoot><tr><th scope="row">sum</th>{empty}{_cell("softmax", weight_text(total))}'
        f"{output}</tr></tfoot>"
    )


def _outputs(outputs: HeadOutputs, head: str) -> str:
    """Z of every head; what each adds to Z through W_O."""
    added = '<th scope="col">Z·W<sub>O</sub>: what it adds</th>' if outputs.projected else ""
    rows = "".join(
        f'<tr{" class=marked" if one.head == head else ""}><th scope="row">Z<sub>{number}</sub> '
        f"{markup_text(one.head)}</th>{_cell('Z of the head', _vector(one.output))}"
        + (_cell("what it adds", _vector(one.added)) if outputs.projected else "")
        + f"{_cell('share', f'{one.share:.1%}')}</tr>"
        for number, one in enumerate(outputs.heads)
    )
    bias = ", with its bias" if outputs.bias else ""
    result = ""
    if outputs.projected:
        result = (
            f'<tfoot><tr><th scope="row">Z{bias}</th><td></td>'
            f"{_cell('all heads', _vector(outputs.result))}<td></td></tr></tfoot>"
        )
    return (
        "<h2>All heads of this layer: Z<sub>0</sub>, Z<sub>1</sub> … times W<sub>O</sub> give Z"
        "</h2>"
        '<div class="table-scroll"><table><thead><tr><th scope="col">head</th>'
        f'<th scope="col">Z of the head</th>{added}<th scope="col">share</th></tr></thead>'
        f"<tbody>{rows}</tbody>{result}</table></div>"
    )


def _vector(numbers: Vector) -> str:
    """A vector in brackets: whole up to eight numbers, beyond them to open."""
    if len(numbers) <= WHOLE:
        return vector_text(numbers, WHOLE)
    return (
        f"<details><summary>{vector_text(numbers, 3)} <small>{len(numbers)} numbers</small>"
        f"</summary>{vector_text(numbers, len(numbers))}</details>"
    )
