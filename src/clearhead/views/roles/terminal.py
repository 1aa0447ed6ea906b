"""Roles in the terminal: the table, the picture of layers × heads, examples in their sentences."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from rich import box
from rich.console import RenderableType
from rich.padding import Padding
from rich.style import Style
from rich.table import Table
from rich.text import Text

from clearhead.explain.roles.effect import Effect
from clearhead.explain.roles.reports import HeadEvidence
from clearhead.explain.roles.roles import Roles
from clearhead.views.roles.text import (
    CAUTION,
    EFFECT_HEADINGS,
    HEADINGS,
    SINK_NOTE,
    best_roles,
    cells,
    effect_rows,
    effect_unit,
    example_pieces,
    listed_roles,
    percent,
    row,
    signs,
)
from clearhead.views.terminal.parts import ACCENT, QUIET, indented, plain_cell

SHOWN = 24  # roles of the table, unless all are wanted
STYLES = {"": Style(), "query": Style(bold=True), "target": ACCENT, "miss": Style(underline=True)}


def roles_parts(roles: Roles, width: int, most: int | None = SHOWN) -> Iterable[RenderableType]:
    """Everything, from the table to the notes."""
    yield Text(f"  {roles.title}", style="bold")
    totals = roles.tally.totals
    yield indented(f"{totals['sentences']:,} sentences, {totals['tokens']:,} tokens; one half "
                   "finds a role, the other confirms it: these are its numbers.")  # fmt: skip
    yield Text()
    if listed_roles(roles):
        yield from _table(roles, most)
    else:
        yield indented("No role found.")
    yield Text()
    yield from _picture(roles, width)
    yield from _examples(roles)
    yield from _effects(roles.effects)
    yield Text()
    yield from (indented(note) for note in (*roles.notes, *_unscored(roles), CAUTION))


def _table(roles: Roles, most: int | None) -> Iterable[RenderableType]:
    letters, shown = signs(roles), listed_roles(roles)
    table = Table("", *HEADINGS, box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for column in table.columns[3:]:
        column.justify = "right"
    lines = [(role, 0) for role in shown] if most is None else best_roles(roles)[:most]
    for role, many in lines:
        head, name, *numbers = row(role)
        name = f"{name} ×{many}" if many > 2 else name
        table.add_row(
            Text(letters[role.property], style=ACCENT), *map(plain_cell, (head, name, *numbers))
        )
    yield Padding(table, (0, 0, 0, 2))
    if len(shown) > len(lines):
        yield indented(
            "The best heads of each role (×85: 85 heads have it); --all or --csv has the others."
        )


def _picture(roles: Roles, width: int) -> Iterable[RenderableType]:
    """A letter for each head; layers side by side in as many columns as fit."""
    rows = cells(roles)
    name = max(len(one[0].head.split("H")[0]) for one in rows) + 1
    heads = max(len(one) for one in rows)
    across = max(1, min(len(rows), (width - 2) // (name + 2 * heads + 3)))
    down = -(-len(rows) // across)
    yield indented(f"Layers (down) × heads (across). Letters are those of the table. {SINK_NOTE}")
    for line in range(down):
        text = Text("  ")
        for layer in range(line, len(rows), down):
            text.append(f"{rows[layer][0].head.split('H')[0]:>{name}} ", style=QUIET)
            for cell in rows[layer]:
                text.append(f"{cell.sign} ", style=ACCENT if cell.role is not None else QUIET)
            text.append("  " + "  " * (heads - len(rows[layer])))
        yield text


def _examples(roles: Roles, most: int = 4) -> Iterable[RenderableType]:
    shown = [role for role in listed_roles(roles) if roles.examples.get((role.head, role.property))]
    if not shown:
        return
    yield Text("\n  Examples: «query» and [key with its weight]", style="bold")
    kinds = [next(group) for _, group in groupby(shown, key=lambda role: role.property)]
    first = {role.property: role for role in reversed(kinds)}
    for role in list(reversed(first.values()))[:most]:
        example = roles.examples[role.head, role.property][0]
        yield indented(f"{role.head}, {role.property}")
        yield Padding(_sentence(example), (0, 0, 0, 4))


def _effects(effects: tuple[Effect, ...]) -> Iterable[RenderableType]:
    if not effects:
        return
    yield Text("\n  Ablated", style="bold")
    yield indented(f"{effect_unit(effects)[0].upper()}{effect_unit(effects)[1:]}.")
    table = Table(*EFFECT_HEADINGS, box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for column in table.columns[2:]:
        column.justify = "right"
    for line in effect_rows(effects):
        table.add_row(*map(plain_cell, line))
    yield Padding(table, (0, 0, 0, 2))


def _sentence(example: object) -> Text:
    text = Text()
    for piece, kind in example_pieces(example):  # type: ignore[arg-type]
        text.append(piece, style=STYLES[kind])
    return text


def _unscored(roles: Roles) -> Iterable[str]:
    """Properties that could not be scored, by the reason."""
    reasons = sorted(
        (report.verdict, report.name) for report in roles.properties if report.verdict != "scored"
    )
    for verdict, group in groupby(reasons, key=lambda one: one[0]):
        names = [name for _, name in group]
        more = f" and {len(names) - 8} more" if len(names) > 8 else ""
        yield f"{verdict.capitalize()}: {', '.join(names[:8])}{more}."


def evidence_parts(evidence: HeadEvidence, width: int) -> Iterable[RenderableType]:
    """One head: its roles with examples, and its best scores."""
    del width
    report = evidence.report
    roles = ", ".join(role.property for role in report.roles) or "no role found"
    yield Text(f"  {report.name}: {roles}", style="bold")
    yield indented(f"Its strongest key is the first or a special token in "
                   f"{percent(report.sink_share)} of all queries.")  # fmt: skip
    yield Text()
    table = Table(*HEADINGS[1:], box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for column in table.columns[1:]:
        column.justify = "right"
    for score in evidence.best:
        low, high = score.interval
        table.add_row(
            plain_cell(score.property_name), percent(score.accuracy),
            f"{100 * low:.0f} … {percent(high)}", percent(score.baseline), f"{score.cases:,}",
            f"{score.mass:.2f}",
        )  # fmt: skip
    yield Padding(table, (0, 0, 0, 2))
    for name, examples in evidence.examples.items():
        yield Text(f"\n  {name}", style="bold")
        for example in examples:
            yield Padding(_sentence(example), (0, 0, 0, 4))
            if not example.hit:
                yield Padding(Text("(a miss)", style=QUIET), (0, 0, 0, 4))
    yield from _effects(evidence.effects)
    yield Text()
    yield indented(CAUTION)
