"""Roles as one self-contained HTML file: picture, table, and each head's evidence to open.

A line of the table opens by a click on it or on its head in the picture. There is no script:
browsers open what holds the target of a link. So it also works in a notebook that runs none.
"""

from __future__ import annotations

import html

from clearhead.explain.roles.examples import Example
from clearhead.explain.roles.judging import Role
from clearhead.explain.roles.roles import Roles
from clearhead.views.escape import markup_text
from clearhead.views.page.files import style
from clearhead.views.page.static import header, script
from clearhead.views.roles.text import (
    CAUTION,
    HEADINGS,
    SINK_NOTE,
    Cell,
    cells,
    effect_text,
    example_pieces,
    listed_roles,
    percent,
    plain_role,
    resting_heads,
    role_groups,
    row,
    signs,
)

FIRST_SHOWN = 4  # heads of a role that are not behind a click
SHADES = 5  # of a cell, by the accuracy of its head
FRAME = "clearhead-roles"


def roles_page(roles: Roles, *, framed: bool = False) -> str:
    """The whole file; in the frame of a notebook links need a base of their own."""
    base = '<base href="about:srcdoc">' if framed else ""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">{base}'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>clearhead – {markup_text(roles.title)}</title><style>{style('roles.css')}</style>"
        f'</head><body class="roles-page" data-static>\n{_body(roles)}\n'
        f"{'' if framed else script()}</body></html>\n"
    )


def roles_frame(roles: Roles, still: str) -> str:
    """The page in a frame of its own, for a notebook: links of several cannot meet.

    A notebook that is not trusted loses frames and styles: then it shows ``still``, a picture.
    """
    page = html.escape(roles_page(roles, framed=True), quote=True)
    frame = (
        f"iframe.{FRAME}{{width:100%;height:720px;border:0;resize:vertical;overflow:auto}}"
        f"iframe.{FRAME}+div{{display:none}}"
    )
    return (
        f'<style>{frame}</style><iframe class="{FRAME}" srcdoc="{page}" sandbox '
        f'title="clearhead: what each head does"></iframe><div>{still}</div>'
    )


def _body(roles: Roles) -> str:
    totals, anchors = roles.tally.totals, _anchors(roles)
    notes = "".join(f"<li>{markup_text(note)}</li>" for note in (*roles.notes, CAUTION))
    found = "".join(_group(roles, name, group, anchors) for name, group in role_groups(roles))
    resting = resting_heads(roles)
    if resting:
        found += (
            f'<section class="group"><h2>Resting <small>{len(resting)} heads</small></h2>'
            f'<p class="quiet">They attend mostly to the first or special tokens, and have no role '
            f"in this text: {markup_text(', '.join(resting))}.</p></section>"
        )
    return (
        f'<main class="roles">{header("what each head does", roles.model)}'
        f"<h1>{markup_text(roles.title)}</h1>"
        f'<p class="quiet">{totals["sentences"]:,} sentences, {totals["tokens"]:,} tokens. One '
        "half finds a role, the other confirms it: these are its numbers.</p>"
        f'<div class="side">{_map(roles, anchors)}<section class="list">{_heading()}'
        f"{found or '<p>No role found.</p>'}</section></div>"
        f"<footer><ul>{notes}</ul></footer></main>"
    )


def _anchors(roles: Roles) -> dict[tuple[str, str], str]:
    """A name for each role's evidence: its head's, and a number from the second role on."""
    many: dict[str, int] = {}
    names = {}
    for role in listed_roles(roles):
        many[role.head] = many.get(role.head, 0) + 1
        number = f"-{many[role.head]}" if many[role.head] > 1 else ""
        names[role.head, role.property] = markup_text(f"role-{role.head}{number}")
    return names


def _map(roles: Roles, anchors: dict[tuple[str, str], str]) -> str:
    rows = cells(roles)
    heads = max(len(one) for one in rows)
    heading = "".join(f'<th scope="col">{head}</th>' for head in range(heads))
    lines = [f'<tr><th><span class="unseen">layer and head</span></th>{heading}</tr>']
    for one in rows:
        name = markup_text(one[0].head.rpartition("H")[0])
        drawn = "".join(_cell(cell, anchors) for cell in one)
        lines.append(f'<tr><th scope="row">{name}</th>{drawn}</tr>')
    return (
        f'<nav id="map" aria-label="all heads"><div class="scroll"><table class="map">'
        f'{"".join(lines)}</table></div><p class="quiet">Layers down, heads across. A letter is a '
        "role; a stronger colour is a higher accuracy; a click shows the evidence. "
        f"{SINK_NOTE}</p>{_legend(roles)}</nav>"
    )


def _legend(roles: Roles) -> str:
    """What each letter of the map means, beside it."""
    letters = signs(roles)
    items = "".join(
        f'<li><b class="sign">{markup_text(letters[name])}</b> '
        f'<a href="#{_group_anchor(letters[name])}">{markup_text(plain_role(name))}</a> '
        f'<span class="quiet">{len(group)}</span></li>'
        for name, group in role_groups(roles)
    )
    return f'<ul class="legend" aria-label="what the letters mean">{items}</ul>'


def _group_anchor(letter: str) -> str:
    return f"group-{ord(letter)}"


def _group(roles: Roles, name: str, group: list[Role], anchors: dict[tuple[str, str], str]) -> str:
    """One role: its heads, the best first; of many the rest behind a click."""
    letter = signs(roles)[name]
    drawn = [_role(roles, role, letter, anchors[role.head, role.property]) for role in group]
    best, rest = "".join(drawn[:FIRST_SHOWN]), "".join(drawn[FIRST_SHOWN:])
    more = len(group) - FIRST_SHOWN
    if rest:
        heads = "heads" if more > 1 else "head"
        rest = f'<details class="more"><summary>{more} more {heads}</summary>{rest}</details>'
    many = f"{len(group)} head{'s' * (len(group) > 1)}"
    return (
        f'<section class="group" id="{_group_anchor(letter)}"><h2>{markup_text(plain_role(name))} '
        f"<small>{many}</small></h2>{best}{rest}</section>"
    )


def _cell(cell: Cell, anchors: dict[tuple[str, str], str]) -> str:
    if cell.role is None:
        label = markup_text(f"{cell.head}: no role found")
        return f'<td title="{label}">{markup_text(cell.sign)}</td>'
    accuracy = cell.role.confirmed.accuracy
    label = markup_text(
        f"{cell.head}: {plain_role(cell.role.property)}, accuracy {percent(accuracy)}"
    )
    return (
        f'<td class="shade-{min(SHADES - 1, int(SHADES * accuracy))}">'
        f'<a href="#{anchors[cell.head, cell.role.property]}" title="{label}" '
        f'aria-label="{label}">{markup_text(cell.sign)}</a></td>'
    )


def _heading() -> str:
    return f'<div class="row heading">{_columns(("", *HEADINGS))}</div>'


def _columns(texts: tuple[str, ...]) -> str:
    return "".join(
        f'<span class="{name}">{markup_text(text)}</span>'
        for name, text in zip(
            ("sign", "head", "name", "number", "number more", "number more", "number more",
             "number more"), texts, strict=True
        )
    )  # fmt: skip


def _role(roles: Roles, role: Role, letter: str, anchor: str) -> str:
    examples = "".join(_example(one) for one in roles.examples.get((role.head, role.property), ()))
    effects = "".join(
        f"<p>{markup_text(effect_text(effect))}.</p>"
        for effect in roles.effects
        if (effect.head, effect.property) == (role.head, role.property)
    )
    left_out = "<p>The first and special tokens are left out: the head attends mostly to them.</p>"
    return (
        f'<details><summary class="row">{_columns((letter, *row(role)))}</summary>'
        f'<div class="evidence" id="{anchor}"><p>{markup_text(_numbers(role))}</p>'
        f"{left_out if role.left_out else ''}{examples}{effects}"
        '<p class="back"><a href="#map">back to the map</a></p></div></details>'
    )


def _numbers(role: Role) -> str:
    """The numbers of the columns as sentences: narrow screens show only some columns."""
    score, found = role.confirmed, role.found
    baselines = [f"at random {percent(score.at_random)}"]
    if score.at_offset:
        baselines.insert(0, f"best fixed offset ({score.offset:+d}) {percent(score.at_offset)}")
    if score.at_random_alike is not None:
        baselines.append(f"at random among words of the same kind {percent(score.at_random_alike)}")
    low, high = score.interval
    return (
        f"Right in {percent(score.accuracy)} of {score.cases:,} cases ({100 * low:.0f} … "
        f"{percent(high)}), with {score.mass:.2f} of the weight. Baselines: "
        f"{'; '.join(baselines)}. On the half that found it: {percent(found.accuracy)} of "
        f"{found.cases:,} cases."
    )


def _example(example: Example) -> str:
    pieces = "".join(
        f'<span class="{kind}">{markup_text(text)}</span>' if kind else markup_text(text)
        for text, kind in example_pieces(example)
    )
    miss = "" if example.hit else ' <span class="quiet">(a miss)</span>'
    return f'<blockquote dir="auto">{pieces}{miss}</blockquote>'
