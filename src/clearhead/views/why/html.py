"""A prediction and its parts as one self-contained HTML file.

A head opens by a click on it in the map or in the list: its sources, weight beside part. There is
no script: browsers open what holds the target of a link, in a notebook that runs none as well.
"""

from __future__ import annotations

import html

import numpy as np

from clearhead.explain.pictures import Mark
from clearhead.explain.why.parts import HeadPart, Why
from clearhead.views.escape import markup_text
from clearhead.views.page.files import style
from clearhead.views.page.static import header, script
from clearhead.views.why.growth import growth_of
from clearhead.views.why.text import (
    ablated,
    ablation_text,
    becomes,
    headline,
    looks_at,
    mark_of,
    percent,
    plain,
    prediction,
    proof_text,
    rest,
    signed,
    source_name,
    summary,
)

LISTED = 24  # heads of the list; the weaker ones stand behind it, and open from the map
MOST_ROWS = 20_000  # sources of all heads that can be opened
SOURCES = 24  # of each
FRAME = "clearhead-why"
WIDE, HIGH = 1000, 120  # the bars of layers


def why_page(why: Why, *, framed: bool = False) -> str:
    """The whole file; in the frame of a notebook links need a base of their own."""
    base = '<base href="about:srcdoc">' if framed else ""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">{base}'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>clearhead – {markup_text(headline(why))}</title>"
        f"<style>{style('why.css')}{_choices(why)}</style>"
        f'</head><body class="why-page" data-static>\n{_body(why)}\n{"" if framed else script()}'
        "</body></html>\n"
    )


def why_frame(why: Why, still: str) -> str:
    """The page in a frame of its own, for a notebook; ``still`` where frames are lost."""
    return in_frame(why_page(why, framed=True), still, "clearhead: why")


def in_frame(page: str, still: str, title: str) -> str:
    """A page without scripts in a frame, with a still picture behind it."""
    frame = (
        f"iframe.{FRAME}{{width:100%;height:720px;border:0;resize:vertical;overflow:auto}}"
        f"iframe.{FRAME}+div{{display:none}}"
    )
    return (
        f'<style>{frame}</style><iframe class="{FRAME}" srcdoc="{html.escape(page, quote=True)}" '
        f'sandbox title="{title}"></iframe><div>{still}</div>'
    )


def _body(why: Why) -> str:
    notes = (proof_text(why), ablation_text(why), *why.notes)
    listed = "".join(f"<li>{markup_text(note)}</li>" for note in notes)
    source = ""
    if why.source_columns:
        source = f'<p class="quiet">Source</p>{_sentence(why, why.source_columns, "source")}'
    return (
        f'<main class="why">{header("why", why.model)}'
        f"<h1>{markup_text(headline(why))}</h1>"
        f'<p class="quiet">{markup_text(prediction(why))}</p><p>{markup_text(summary(why))}</p>'
        f"{source}{_sentence(why, why.columns, 'text')}"
        f'<div class="columns"><section aria-label="words"><h2>Words, over all heads</h2>'
        f"{_words(why)}{_map(why)}</section>"
        f'<section aria-label="heads" id="heads"><h2>Heads</h2>{_heads(why)}</section></div>'
        f"{_compare(why)}{_layers(why)}<footer><ul>{listed}</ul></footer></main>"
    )


def _sentence(why: Why, marks: tuple[Mark, ...], text: str) -> str:
    values = {one.column: one.value for one in why.sources if one.text == text}
    largest = max([abs(one.value) for one in why.sources] + [1e-30])
    words = []
    for column, mark in enumerate(marks):
        value = values.get(column, 0.0)
        words.append(
            f'<span class="word {colour_class(value, largest)}" title="{signed(value)}">'
            f"{markup_text(mark.text)}<small>{signed(value)}</small></span>"
        )
    return f'<p class="sentence" dir="auto">{" ".join(words)}</p>'


def colour_class(value: float, largest: float) -> str:
    """The class of a part's colour: its sign, and its strength from 0 to 4."""
    strength = 0 if largest <= 0 else min(4, int(5 * abs(value) / largest))
    return f"{'for' if value > 0 else 'against'}-{strength}"


def _words(why: Why) -> str:
    lines = [(source_name(why, one), one.value) for one in why.sources[:12]]
    left = why.sources[12:]
    if left:
        lines.append((f"{len(left)} more words", sum(one.value for one in left)))
    lines += rest(why)
    largest = max([abs(value) for _, value in lines] + [1e-30])
    rows = "".join(
        f'<tr><th scope="row">{markup_text(name)}</th><td class="bar">'
        f'<meter class="{"for" if value > 0 else "against"}" min="0" max="1" '
        f'value="{abs(value) / largest:.4f}">{signed(value)}</meter></td>'
        f'<td class="number">{signed(value)}</td></tr>'
        for name, value in lines
    )
    total = f'<tr class="sum"><th scope="row">sum</th><td></td><td>{signed(why.total)}</td></tr>'
    return f'<table class="parts">{rows}{total}</table>'


def _heads(why: Why) -> str:
    measured = why.effects is not None
    columns = ["head", "part", *(["effect"] if measured else []), "takes it from"]
    columns += [becomes(why), ""] if measured else []
    heading = "".join(f"<span>{name}</span>" for name in columns)
    found = "".join(_head(why, part) for part in why.heads[:LISTED])
    opened = _opened(why)
    weaker = "".join(_head(why, part) for part in opened[LISTED:])
    if weaker:
        weaker = (
            f"<details><summary>{len(opened) - LISTED} weaker heads</summary>{weaker}</details>"
        )
    more = len(why.heads) - len(opened)
    left = f'<p class="quiet">{more} more heads are in the map.</p>' if more > 0 else ""
    kind = "row heading" if measured else "row heading unmeasured"
    return f'<div class="{kind}">{heading}</div>{found}{weaker}{left}'


def _opened(why: Why) -> tuple[HeadPart, ...]:
    """The heads that can be opened: all of them, unless the text is long."""
    each = max([1, *(min(SOURCES, len(part.sources)) for part in why.heads)])
    return why.heads[: max(LISTED, MOST_ROWS // each)]


def _head(why: Why, part: HeadPart) -> str:
    effect, probability = ablated(why, part.name)
    cells = [part.name, signed(part.value), *([effect] if effect else []), looks_at(part)]
    cells += [probability, mark_of(why, part.name)] if effect else []
    kind = "row" if effect else "row unmeasured"
    line = "".join(f"<span>{markup_text(cell)}</span>" for cell in cells)
    rows = "".join(
        f'<tr><th scope="row">{markup_text(one.mark.text)}</th>'
        f"<td>{0.0 if one.weight is None else one.weight:.4f}</td>"
        f"<td>{signed(one.value, 4)}</td></tr>"
        for one in part.sources[:SOURCES]
    )
    left = len(part.sources) - SOURCES
    more = f'<p class="quiet">{left} weaker sources are left out.</p>' if left > 0 else ""
    return (
        f'<details><summary class="{kind}">{line}</summary>'
        f'<div class="evidence" id="why-{markup_text(part.name)}">'
        '<table class="parts"><tr><th scope="col">source</th><th scope="col">weight</th>'
        f'<th scope="col">part</th></tr>{rows}</table>{more}{_effect(why, part)}'
        '<p class="back"><a href="#heads">back to the heads</a></p></div></details>'
    )


def _effect(why: Why, part: HeadPart) -> str:
    effect = None if why.effects is None else why.effects.of(part.name)
    if effect is None or why.effects is None:
        return ""
    said = (
        f"Ablated in a real run: the target goes from {plain(why.effects.target)} to "
        f"{plain(why.effects.target - effect.total)}, the probability of the token from "
        f"{percent(why.effects.probability)} to {percent(effect.probability)}."
    )
    return f"<p>{markup_text(said)}</p>"


def _map(why: Why) -> str:
    names, grid = why.grid()
    largest = float(np.nanmax(np.abs(grid))) if grid.size else 0.0
    listed = {part.name for part in _opened(why)}
    heading = "".join(f'<th scope="col">{head}</th>' for head in range(grid.shape[1]))
    lines = [f'<tr><th><span class="unseen">layer and head</span></th>{heading}</tr>']
    for row, name in enumerate(names):
        cells = "".join(
            _cell(f"{name}H{head}", float(value), largest, listed)
            for head, value in enumerate(grid[row])
        )
        lines.append(f'<tr><th scope="row">{markup_text(name)}</th>{cells}</tr>')
    return (
        '<nav aria-label="all heads"><h2>All heads</h2><div class="scroll">'
        f'<table class="map">{"".join(lines)}</table></div><p class="quiet">Layers down, heads '
        "across. + is for the token, − against it; a stronger colour is a larger part. A click "
        "opens the head.</p></nav>"
    )


def _cell(name: str, value: float, largest: float, listed: set[str]) -> str:
    if value != value:
        return "<td></td>"
    label = f"{name}: {signed(value)}"
    sign = "" if abs(value) < 0.05 * largest else "+" if value > 0 else "−"
    inside = sign or "·"
    if name in listed:
        inside = f'<a href="#why-{name}" title="{label}" aria-label="{label}">{inside}</a>'
    return f'<td class="{colour_class(value, largest)}" title="{label}">{inside}</td>'


def _compared(why: Why) -> list[str]:
    """The heads that can be chosen: the largest parts, then the largest effects."""
    names = [part.name for part in why.heads[:LISTED]]
    if why.effects is not None:
        heads = [one.name for one in why.effects.all if not one.name.endswith("F")]
        names += [name for name in heads[:LISTED] if name not in names]
    return names


def _choices(why: Why) -> str:
    """A rule for each head: its line is there while its box is checked."""
    return "".join(
        f".why-page:has(#pick-{name}:checked) .of-{name}{{display:var(--shown)}}"
        for name in _compared(why)
    )


def _compare(why: Why) -> str:
    """Boxes for heads, and a table of what was measured of the chosen ones."""
    boxes = "".join(
        f'<label><input type="checkbox" id="pick-{name}"{" checked" * (number < 3)}>{name}</label>'
        for number, name in enumerate(_compared(why))
    )
    columns = _columns(why)
    heading = "".join(f'<th scope="col">{name}</th>' for name in ("head", *columns))
    rows = "".join(_compared_head(why, name) for name in _compared(why))
    return (
        '<section aria-label="compare heads"><h2>Compare heads</h2>'
        f'<p class="picks">{boxes}</p><div class="scroll"><table class="parts compare">'
        f"<tr>{heading}</tr>{rows}</table></div></section>"
    )


def _columns(why: Why) -> list[str]:
    columns = ["part", "takes it from"]
    if why.effects is not None:
        columns += ["effect of ablating it", "target without it", "probability without it", ""]
    return columns


def _compared_head(why: Why, name: str) -> str:
    part = why.head(name)
    assert part is not None
    sources = ", ".join(
        f"{one.mark.text} {signed(one.value).strip()} (weight {one.weight or 0.0:.2f})"
        for one in part.sources[:3]
    )
    cells = [signed(part.value), sources]
    effect = None if why.effects is None else why.effects.of(name)
    if effect is not None and why.effects is not None:
        left, probability = why.effects.target - effect.total, percent(effect.probability)
        cells += [signed(effect.total), plain(left), probability, mark_of(why, name)]
    shown = "".join(
        f'<td data-label="{label}">{markup_text(cell)}</td>'
        for label, cell in zip(_columns(why), cells, strict=False)  # some were not measured
    )
    return f'<tr class="of of-{name}"><th scope="row">{name}</th>{shown}</tr>'


def _layers(why: Why) -> str:
    rows = "".join(
        f'<tr><th scope="row">{markup_text(one.name)}</th><td>{signed(one.heads)}</td>'
        f"<td>{signed(one.feed_forward)}</td><td>{plain(one.sum)}</td></tr>"
        for one in why.layers
    )
    return (
        f"{_growth(why)}<details><summary>The numbers of the layers</summary>"
        '<table class="parts"><tr>'
        '<th scope="col">layer</th><th scope="col">heads</th><th scope="col">feed-forward</th>'
        f'<th scope="col">sum so far</th></tr>{rows}</table></details>'
    )


def _growth(why: Why) -> str:
    """The sum so far as bars, each with its numbers under the pointer."""
    growth = growth_of(why, WIDE, HIGH)
    if not growth.bars:
        return ""
    bars = "".join(
        f'<rect class="{"for" if bar.layer.sum > 0 else "against"}" x="{bar.x:.2f}" '
        f'y="{bar.y:.2f}" width="{bar.width:.2f}" height="{max(0.5, bar.height):.2f}">'
        f"<title>{markup_text(bar.label)}</title></rect>"
        for bar in growth.bars
    )
    first, last = why.layers[0], why.layers[-1]
    ends = f"{first.name} {signed(first.sum).strip()} … {last.name} {signed(last.sum).strip()}"
    return (
        '<section aria-label="layers"><h2>Layer by layer: the sum so far</h2>'
        f'<svg class="growth" viewBox="0 0 {WIDE} {HIGH}" role="img" '
        f'aria-label="{markup_text(ends)}">{bars}</svg>'
        f'<p class="quiet">{markup_text(ends)}. Upwards is for the token.</p></section>'
    )
