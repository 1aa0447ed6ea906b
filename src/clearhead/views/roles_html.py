"""Roles as one self-contained HTML file: picture, table, and each head's evidence to open."""

from __future__ import annotations

from importlib import resources

from clearhead.explain.roles.examples import Example
from clearhead.explain.roles.judging import Role
from clearhead.explain.roles.roles import Roles
from clearhead.views.escape import markup_text
from clearhead.views.roles_text import (
    CAUTION,
    HEADINGS,
    cells,
    effect_text,
    example_pieces,
    row,
    signs,
    title,
    told,
)
from clearhead.views.svg_parts import colour_at, ink_on


def roles_page(roles: Roles) -> str:
    """The whole file."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>clearhead – {markup_text(title(roles))}</title>"
        "<style>body{margin:0;background:#fbfbf9}"
        "@media (prefers-color-scheme:dark){body{background:#15171c}}</style>"
        f"</head><body>\n{roles_fragment(roles)}\n</body></html>\n"
    )


def roles_fragment(roles: Roles) -> str:
    """The same as one element, for a notebook or somebody else's page."""
    totals = roles.tally.totals
    notes = "".join(f"<li>{markup_text(note)}</li>" for note in (*roles.notes, CAUTION))
    style = resources.files("clearhead.views").joinpath("page/roles.css").read_text("utf-8")
    evidence = "".join(_evidence(roles, role) for role in told(roles))
    return (
        f'<style>{style}</style>\n<div class="roles"><h1>{markup_text(title(roles))}</h1>'
        f'<p class="quiet">{totals["sentences"]:,} sentences, {totals["tokens"]:,} tokens. One '
        "half finds a role, the other confirms it and gives these numbers.</p>"
        f'<div class="side">{_map(roles)}{_table(roles)}</div>'
        f"<h2>The evidence</h2>{evidence or '<p>No role found.</p>'}"
        f"<footer><ul>{notes}</ul></footer></div>"
    )


def _map(roles: Roles) -> str:
    rows = cells(roles)
    heads = max(len(one) for one in rows)
    heading = "".join(f'<th scope="col">{head}</th>' for head in range(heads))
    lines = [f"<tr><th></th>{heading}</tr>"]
    for one in rows:
        name = markup_text(one[0].head.split("H")[0])
        drawn = []
        for cell in one:
            if cell.role is None:
                said = f"{cell.head}: no role found"
                drawn.append(f'<td title="{markup_text(said)}">{markup_text(cell.sign)}</td>')
                continue
            strength = 0.25 + 0.75 * cell.role.confirmed.accuracy
            said = markup_text(f"{cell.head}: {cell.role.property}")
            colours = f"background:{colour_at(strength)};color:{ink_on(strength)}"
            drawn.append(
                f'<td style="{colours}"><a href="#{_anchor(cell.role)}" title="{said}" '
                f'aria-label="{said}">{markup_text(cell.sign)}</a></td>'
            )
        lines.append(f'<tr><th scope="row">{name}</th>{"".join(drawn)}</tr>')
    return f'<div class="scroll"><table class="map">{"".join(lines)}</table></div>'


def _table(roles: Roles) -> str:
    letters = signs(roles)
    heading = "".join(
        f'<th scope="col"{_number(place)}>{markup_text(text)}</th>'
        for place, text in enumerate(("", *HEADINGS))
    )
    lines = []
    for role in told(roles):
        drawn = "".join(
            f"<td{_number(place)}>{markup_text(text)}</td>"
            for place, text in enumerate((letters[role.property], *row(role)))
        )
        lines.append(f"<tr>{drawn}</tr>")
    return (
        f'<div class="scroll"><table class="list"><thead><tr>{heading}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _number(place: int) -> str:
    return ' class="number"' if place > 2 else ""


def _evidence(roles: Roles, role: Role) -> str:
    score = role.confirmed
    alike = score.at_random_alike
    free = f"best fixed offset ({score.offset:+d}) {score.at_offset:.0%}" if score.at_offset else ""
    free = "; ".join(
        part
        for part in (
            free,
            f"at random {score.at_random:.0%}",
            "" if alike is None else f"at random among words of the same kind {alike:.0%}",
        )
        if part
    )
    examples = "".join(_example(one) for one in roles.examples.get((role.head, role.property), ()))
    effects = "".join(
        f"<p>{markup_text(effect_text(effect))}</p>"
        for effect in roles.effects
        if (effect.head, effect.property) == (role.head, role.property)
    )
    left_out = "<p>The first and special tokens are left out: it rests there.</p>"
    return (
        f'<details id="{_anchor(role)}"><summary><b>{markup_text(role.head)}</b> '
        f"{markup_text(role.property)}: {score.accuracy:.0%} of {score.cases:,} cases</summary>"
        f"<p>For free: {markup_text(free)}. Found with {role.found.accuracy:.0%} of "
        f"{role.found.cases:,} cases on the first half.</p>"
        f"{left_out if role.left_out else ''}{examples}{effects}</details>"
    )


def _example(example: Example) -> str:
    pieces = "".join(
        f'<span class="{kind}">{markup_text(text)}</span>' if kind else markup_text(text)
        for text, kind in example_pieces(example)
    )
    miss = "" if example.hit else " (a miss)"
    return f'<blockquote dir="auto">{pieces}{miss}</blockquote>'


def _anchor(role: Role) -> str:
    letters = (mark if mark.isalnum() else "-" for mark in f"{role.head}-{role.property}")
    return markup_text("role-" + "".join(letters))
