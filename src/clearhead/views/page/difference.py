"""The difference of two looks as a page: two maps side by side, what changed in them marked.

It needs no script: a head is chosen by a radio button.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clearhead.explain.difference import CellChange, Difference, HeadMaps
from clearhead.explain.pictures import LEAST, HeadPicture, Mark
from clearhead.views.escape import markup_text
from clearhead.views.numbers import weight_text
from clearhead.views.page.files import style
from clearhead.views.page.static import header, script
from clearhead.views.svg.difference import strongest_shown

SHOWN = 10  # heads, words and weights that are listed
SHADES = 5
MARKED = 0.1  # a change of a weight that is framed

Partners = Mapping[int, int]


def difference_fragment(difference: Difference) -> str:
    """The page as one element."""
    notes = "".join(f"<li>{markup_text(note)}</li>" for note in difference.notes)
    heads = [(_pair(one.before, one.after), one.distance) for one in difference.heads[:SHOWN]]
    words = [
        (_pair(one.before.text, one.after.text), one.distance) for one in difference.words[:SHOWN]
    ]
    return (
        f'<style>{style("view.css")}</style>\n<div class="clearhead" data-static>'
        f'<main class="static difference">{header("what changed", *difference.models)}'
        f"<h1>What changed</h1>{_sides(difference)}{_maps(difference)}"
        f'<section class="card"><h2>Weights that changed most</h2>{_changes(difference.changes)}'
        '</section><div class="halves">'
        f"{_bars('Heads, by the mean distance of their rows', 'head', heads)}"
        f"{_bars('Words, by the mean distance over heads', 'word', words)}</div>"
        f"<footer><ul>{notes}</ul></footer></main></div>{script()}"
    )


def _sides(difference: Difference) -> str:
    names = (difference.before, difference.after)
    lines = []
    for when, name, model in zip(("before", "after"), names, difference.models, strict=True):
        of = f' <span class="quiet">in {markup_text(model)}</span>' if model else ""
        lines.append(f'<dt>{when}</dt><dd dir="auto">{markup_text(name)}{of}</dd>')
    for what, words in (("only before", difference.gone), ("only after", difference.new)):
        if words:
            lines.append(f'<dt>{what}</dt><dd dir="auto">{markup_text(", ".join(words))}</dd>')
    return f"<dl>{''.join(lines)}</dl>"


def _maps(difference: Difference) -> str:
    if not difference.maps:
        return ""
    parts = []
    for number, maps in enumerate(difference.maps):
        name, checked = maps[0].head, " checked" * (number == 0)
        parts.append(
            f'<input type="radio" name="head" id="head-{number}" class="pick" data-choice="head" '
            f'value="{markup_text(name)}"{checked}><label for="head-{number}">'
            f"{markup_text(_pair(name, maps[1].head))}</label>"
            f'<section class="card panel"><div class="halves">{_both(maps, difference)}</div>'
            f'<p class="quiet">Rows look at columns. Framed: a weight that changed by '
            f"{weight_text(MARKED)} or more. Grey: masked or hidden.</p></section>"
        )
    asked = "Which head, the most changed first:" if len(parts) > 1 else "The head:"
    return f'<p class="quiet">{asked}</p><div class="queries">{"".join(parts)}</div>'


def _both(maps: HeadMaps, difference: Difference) -> str:
    first, second = maps
    rows, columns = dict(difference.rows), dict(difference.columns)
    back = {b: a for a, b in rows.items()}, {b: a for a, b in columns.items()}
    most = max(*map(strongest_shown, maps), LEAST)  # one scale for both
    return (
        f"<div><h2>{markup_text(first.head)} before</h2>"
        f"{_map(first, second, rows, columns, most)}</div>"
        f"<div><h2>{markup_text(second.head)} after</h2>{_map(second, first, *back, most)}</div>"
    )


def _map(
    picture: HeadPicture, other: HeadPicture, rows: Partners, columns: Partners, most: float
) -> str:
    heading = "".join(
        f'<th scope="col"><span dir="auto">{_short(mark)}</span></th>' for mark in picture.columns
    )
    lines = []
    for row, mark in enumerate(picture.rows):
        cells = "".join(
            _cell(picture, other, (row, column), (rows.get(row), columns.get(column)), most)
            for column in range(len(picture.columns))
        )
        lines.append(f'<tr><th scope="row" dir="auto">{_short(mark)}</th>{cells}</tr>')
    return (
        f'<div class="table-scroll" tabindex="0" role="region" aria-label="the map of '
        f'{markup_text(picture.head)}"><table class="map"><thead><tr><td class="corner"></td>'
        f"{heading}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def _cell(
    picture: HeadPicture,
    other: HeadPicture,
    place: tuple[int, int],
    partner: tuple[int | None, int | None],
    most: float,
) -> str:
    """One weight; framed if its partner on the other side differs, or if it has none there."""
    row, column = place
    if column in picture.hidden or not picture.visible[row, column]:
        return '<td class="blank"></td>'
    weight = float(picture.weights[row, column])
    there, known = 0.0, partner[0] is not None and partner[1] not in other.hidden
    if partner[0] is not None and partner[1] is not None:
        there = float(other.weights[partner[0], partner[1]])
    kinds = [] if weight < LEAST else [f"shade-{min(SHADES - 1, int(SHADES * weight / most))}"]
    kinds += ["changed"] if known and abs(weight - there) >= MARKED else []
    named = f' class="{" ".join(kinds)}"' if kinds else ""
    text = weight_text(weight).removeprefix("0") if weight >= LEAST else ""
    said = f"{picture.rows[row].text} → {picture.columns[column].text}: {weight_text(weight)}"
    beside = f"; on the other side {weight_text(there)}" if known else ""
    return f'<td{named} title="{markup_text(said + beside)}">{text}</td>'


def _changes(changes: Sequence[CellChange]) -> str:
    if not changes:
        return "<p>Nothing changed.</p>"
    rows = "".join(
        f'<tr><th scope="row">{markup_text(one.head)}</th><td dir="auto">'
        f"{markup_text(_pair(one.row.text, one.other_row.text))} → "
        f'{markup_text(one.column_text)}</td><td class="number">{weight_text(one.before)}</td>'
        f'<td class="number"><b>{weight_text(one.after)}</b></td><td class="bar-cell">'
        f"{_track(one.before, 'before')}{_track(one.after)}</td></tr>"
        for one in changes[:SHOWN]
    )
    return (
        '<table class="list"><thead><tr><th scope="col">head</th><th scope="col">from → to</th>'
        '<th scope="col" class="number">before</th><th scope="col" class="number">after</th>'
        f'<th><span class="unseen">both as bars</span></th></tr></thead><tbody>{rows}</tbody>'
        "</table>"
    )


def _bars(title: str, what: str, bars: Sequence[tuple[str, float]]) -> str:
    rows = "".join(
        f'<tr><th scope="row" dir="auto">{markup_text(name)}</th><td class="bar-cell">'
        f'{_track(distance)}</td><td class="number">{weight_text(distance)}</td></tr>'
        for name, distance in bars
    )
    return (
        f'<section class="card"><h2>{title}</h2><table class="list"><thead><tr>'
        f'<th scope="col">{what}</th><th></th><th scope="col" class="number">distance</th></tr>'
        f"</thead><tbody>{rows}</tbody></table></section>"
    )


def _track(share: float, kind: str = "") -> str:
    width = 100 * min(1.0, max(0.004, share))
    return f'<span class="track {kind}" style="width:{width:.1f}%"></span>'


def _pair(before: str, after: str) -> str:
    return before if before == after else f"{before} / {after}"


def _short(mark: Mark) -> str:
    return markup_text(mark.text if len(mark.text) <= 14 else f"{mark.text[:13]}…")
