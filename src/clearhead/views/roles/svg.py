"""Roles as a picture: layers × heads, each head in the colour of its role, and the table."""

from __future__ import annotations

from clearhead.explain.roles.roles import Roles
from clearhead.views.roles.text import CAUTION, HEADINGS, SINK_NOTE, best_roles, cells, row, signs
from clearhead.views.svg.parts import (
    INK,
    LINE,
    MARGIN,
    MASKED,
    QUIET,
    Drawing,
    colour_at,
    draw_notes,
    ink_on,
    shortened,
)

SIDE, GAP, LINE_HEIGHT = 26.0, 3.0, 21.0
ACROSS = (30.0, 70.0, 190.0, 60.0, 110.0, 70.0, 70.0, 60.0)  # widths of the table's columns
MOST = 40  # lines of the table


def draw_roles(roles: Roles) -> str:
    """The whole picture."""
    drawing = Drawing()
    drawing.text(MARGIN, MARGIN + 14, roles.title, size=18, bold=True)
    rows = cells(roles)
    left, above, step = MARGIN + 44, MARGIN + 56, SIDE + GAP
    heads = max(len(one) for one in rows)
    for head in range(heads):
        x = left + head * step + SIDE / 2
        drawing.text(x, above - 8, f"H{head}", size=11, anchor="middle", fill=QUIET)
    for layer, one in enumerate(rows):
        y = above + layer * step
        name = one[0].head.split("H")[0]
        drawing.text(left - 8, y + SIDE / 2 + 4, name, size=11, anchor="end", fill=QUIET)
        for head, cell in enumerate(one):
            x = left + head * step
            strength = 0.0 if cell.role is None else 0.25 + 0.75 * cell.role.confirmed.accuracy
            fill = MASKED if cell.role is None else colour_at(strength)
            drawing.rect(x, y, SIDE, SIDE, fill, 4)
            ink = QUIET if cell.role is None else ink_on(strength)
            drawing.text(x + SIDE / 2, y + SIDE / 2 + 4.5, cell.sign.strip(), anchor="middle",
                         fill=ink, bold=cell.role is not None)  # fmt: skip
    beside = left + heads * step + 30
    below = max(_table(drawing, roles, beside, above), above + len(rows) * step)
    width = beside + sum(ACROSS) + MARGIN
    notes = (
        f"Darker: a higher accuracy. Letters are those of the table. {SINK_NOTE}",
        *roles.notes,
        CAUTION,
    )
    below = draw_notes(drawing, notes, MARGIN, below + 24, width - 2 * MARGIN)
    return drawing.svg(width, below + 8, roles.title)


def _table(drawing: Drawing, roles: Roles, x: float, y: float) -> float:
    letters, shown = signs(roles), best_roles(roles, each=3)
    _line(drawing, x, y, ("", *HEADINGS), QUIET, bold=False)
    drawing.rect(x, y + 5, sum(ACROSS), 1, LINE)
    for role, many in shown[:MOST]:
        y += LINE_HEIGHT
        head, name, *numbers = row(role)
        name = f"{name} ({many} heads)" if many > 3 else name
        _line(drawing, x, y, (letters[role.property], head, name, *numbers), INK, bold=True)
    if len(shown) > MOST:
        y += LINE_HEIGHT
        drawing.text(x, y, f"… and {len(shown) - MOST} more", size=12, fill=QUIET)
    if not shown:
        y += LINE_HEIGHT
        drawing.text(x, y, "No role found.", size=12, fill=QUIET)
    return y


def _line(
    drawing: Drawing, x: float, y: float, texts: tuple[str, ...], fill: str, *, bold: bool
) -> None:
    for place, (text, width) in enumerate(zip(texts, ACROSS, strict=True)):
        right = place > 2
        drawing.text(
            x + width - 8 if right else x, y, shortened(text, 28), size=12,
            anchor="end" if right else "start", fill=fill, bold=bold and place == 0,
        )  # fmt: skip
        x += width
