"""Insight as ``rich`` renderables: readable at 80 columns, with and without colour."""

from __future__ import annotations

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from clearhead.explain.step_table import StepTable, Vector


def show_step_table(table: StepTable) -> RenderableType:
    """The table Word | k | v | score | score/√d | softmax | softmax·v, with the sum below it."""
    selfish = all(row.key == row.value for row in table.rows)  # the keys are the values
    shown = 4 if selfish else 2  # entries of a vector: three columns of them must fit
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, show_footer=True)
    grid.add_column("Word", footer="sum")
    grid.add_column("k = v" if selfish else "k", justify="right")
    if not selfish:
        grid.add_column("v", justify="right")
    grid.add_column("score", justify="right")
    if table.scale != 1.0:
        grid.add_column(table.scale_name, justify="right")
    grid.add_column("softmax", justify="right", footer=f"{sum(r.weight for r in table.rows):.2f}")
    grid.add_column("softmax·v", justify="right", footer=vector_text(table.output, shown))
    strongest = max(row.weight for row in table.rows)
    for row in table.rows:
        cells = [row.word, vector_text(row.key, shown)]
        if not selfish:
            cells.append(vector_text(row.value, shown))
        cells.append(number_text(row.score))
        if table.scale != 1.0:
            cells.append("−∞" if row.masked else number_text(row.scaled))
        cells += [f"{row.weight:.2f}", vector_text(row.weighted, shown)]
        grid.add_row(*cells, style="bold" if row.weight == strongest else None)
    asks = Text.assemble((table.word, "bold"), " asks with q = ", vector_text(table.query, 4))
    if len(table.output) > shown:
        asks.append(f"   (… of vectors of {len(table.output)} numbers {shown} are shown)")
    return Group(Text(table.title, style="bold"), asks, grid)


def vector_text(numbers: Vector, shown: int) -> str:
    """A vector in brackets; of a long one the first entries."""
    whole = all(number == round(number) for number in numbers)
    parts = [_decimals(number, 0 if whole else 2) for number in numbers[:shown]]
    return f"[{' '.join(parts)}{'…' if len(numbers) > shown else ''}]"


def number_text(number: float) -> str:
    """Two decimals; whole numbers without."""
    return _decimals(number, 0 if number == round(number) else 2)


def _decimals(number: float, decimals: int) -> str:
    text = f"{number:.{decimals}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "−")
