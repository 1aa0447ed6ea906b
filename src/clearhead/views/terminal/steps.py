"""The step table at 80 columns: vectors shortened, the masked words together."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.console import Console, JustifyMethod, RenderableType
from rich.measure import measure_renderables
from rich.table import Table
from rich.text import Text

from clearhead.explain.head_outputs import HeadOutputs
from clearhead.explain.step_table import StepRow, StepTable
from clearhead.views.numbers import QUERY_SHOWN, number_text, query_text, vector_text, weight_text
from clearhead.views.terminal.parts import QUIET, bar, cut, indented, ink, level

# Entries of a vector, and columns that are left out: the first that fits.
LAYOUTS: tuple[tuple[int, tuple[str, ...]], ...] = (
    (8, ()), (6, ()), (4, ()), (3, ()), (2, ()), (1, ()), (1, ("v",)), (1, ("v", "k")),
    (1, ("v", "k", "softmax·v")),
)  # fmt: skip
LONGEST = 14  # cells of a word
MOST_ROWS = 16  # words; of a longer text the strongest
WIDE = Console(width=10_000, force_terminal=False)  # to measure with
LISTED = 3  # masked words that get a line of their own


def step_parts(table: StepTable, width: int) -> Iterator[RenderableType]:
    """The query, the table, the outputs of all heads, the proof and the notes."""
    yield Text(table.title, style="bold")
    query = Text(query_text(table, table.word))
    if len(table.query) > QUERY_SHOWN:
        query.append(f"   ({len(table.query)} numbers, cut at …)")
    yield query
    grid, left_out = _fitting(table, width)
    yield grid
    if left_out:
        names = ", ".join(left_out)
        yield indented(f"Left out at {width} columns: {names}. The page (--html) has them.")
    if table.outputs is not None:
        yield from _outputs(table.outputs, table.head, width)
    for note in table.notes:
        yield indented(note)
    if table.proof is not None:
        yield indented(str(table.proof))


def _fitting(table: StepTable, width: int) -> tuple[Table, list[str]]:
    """The table with as many entries of its vectors as there is room for, or fewer columns."""
    for shown, left_out in LAYOUTS:
        grid = _grid(table, shown, left_out)
        if measure_renderables(WIDE, WIDE.options, [grid]).maximum <= width:
            break
    return grid, [name for name in _columns(table) if name in left_out]


def _grid(table: StepTable, shown: int, left_out: tuple[str, ...]) -> Table:
    columns = [name for name in _columns(table) if name not in left_out]
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, show_footer=True)
    sink = 0.0 if table.sink is None else table.sink.weight
    total = weight_text(sum(row.weight for row in table.rows) + sink)
    footers = {"Word": "sum", "softmax": total, "softmax·v": vector_text(table.output, shown)}
    for name in columns:
        right: JustifyMethod = "left" if name == "Word" else "right"
        grid.add_column(name, justify=right, footer=footers.get(name, ""), no_wrap=True)
    strongest = max((row.weight for row in table.rows), default=0.0)
    for row in _chosen(table):
        cells = _cells(table, row, shown)
        style = "bold" if row.weight == strongest else "dim" if row.masked else None
        grid.add_row(*(cells[name] for name in columns), style=style)
    for cells in _left_out(table):
        grid.add_row(*(cells.get(name, "") for name in columns), style=QUIET)
    return grid


def _columns(table: StepTable) -> list[str]:
    """The steps that this attention has."""
    same = all(row.key == row.value for row in table.rows)  # the keys are the values
    values = any(row.value for row in table.rows)
    steps = (
        ("Word", True),
        ("k = v" if same else "k", True),
        ("v", values and not same),
        ("score", True),
        (table.scale_name, table.scale != 1.0),
        (_cap_name(table), table.softcap is not None),
        ("+ bias", table.has_bias),
        ("softmax", True),
        ("softmax·v", values),
    )
    return [name for name, there in steps if there]


def _cap_name(table: StepTable) -> str:
    return "" if table.softcap is None else f"cap {number_text(table.softcap)}"


def _chosen(table: StepTable) -> list[StepRow]:
    """Rows with a line of their own, in the order of the text."""
    masked = [row for row in table.rows if row.masked]
    seen = [row for row in table.rows if not row.masked]
    strongest = sorted(seen, key=lambda row: -row.weight)[:MOST_ROWS]
    kept = {id(row) for row in [*strongest, *(masked if len(masked) <= LISTED else [])]}
    return [row for row in table.rows if id(row) in kept]


def _left_out(table: StepTable) -> Iterator[dict[str, str]]:
    """Lines for what has none of its own: weak words, masked words, the sink."""
    weak = sorted((row.weight for row in table.rows if not row.masked), reverse=True)[MOST_ROWS:]
    if weak:
        yield {"Word": f"{len(weak)} weaker", "softmax": weight_text(sum(weak))}
    masked = [row.masked for row in table.rows if row.masked]
    if len(masked) > LISTED:
        for reason in sorted(set(masked)):
            count = f"{masked.count(reason)} words"
            yield {"Word": count, _last_score(table): f"−∞ {reason}", "softmax": weight_text(0.0)}
    if table.sink is not None:
        score = number_text(table.sink.score)
        yield {"Word": "sink", _last_score(table): score, "softmax": weight_text(table.sink.weight)}


def _last_score(table: StepTable) -> str:
    """The column before softmax: there a masked score becomes −∞."""
    columns = _columns(table)
    return columns[columns.index("softmax") - 1]


def _cells(table: StepTable, row: StepRow, shown: int) -> dict[str, str]:
    cells = {
        "Word": cut(row.word, LONGEST),
        "k": vector_text(row.key, shown),
        "k = v": vector_text(row.key, shown),
        "v": vector_text(row.value, shown),
        "score": number_text(row.score),
        table.scale_name: number_text(row.scaled),
        _cap_name(table): "" if row.capped is None else number_text(row.capped),
        "+ bias": "" if row.bias is None else number_text(row.bias),
        "softmax": weight_text(row.weight),
        "softmax·v": vector_text(row.weighted, shown),
    }
    return cells | ({_last_score(table): f"−∞ {row.masked}"} if row.masked else {})


def _outputs(outputs: HeadOutputs, head: str, width: int) -> Iterator[RenderableType]:
    """Each head's output and its share; concatenated, times W_O, they are Z."""
    names = f"Z_0 … Z_{len(outputs.heads) - 1}" if len(outputs.heads) > 1 else "Z_0"
    through = " side by side, times W_O, give Z" if outputs.projected else ""
    by = "what each adds to Z" if outputs.projected else "their lengths, as W_O is not known here"
    yield Text(f"The heads' outputs {names}{through}", style="bold")
    yield Text(f"Shares by {by}", style=QUIET)
    largest = max(one.share for one in outputs.heads) or 1.0  # all outputs may be zeros
    room = max(8, width - 60)
    for number, one in enumerate(outputs.heads):
        mine = one.head == head
        line = Text(f"  Z_{number:<3}", style="bold" if mine else "")
        line.append(f"{vector_text(one.output, 3):<30} {one.share:>6.1%}  ")
        line.append(bar(level(one.share, largest), room), style=ink(one.share / largest))
        line.append("  ← this head" if mine else "")
        yield line
    if outputs.projected:
        bias = ", bias included" if outputs.bias else ""
        size = len(outputs.result)
        yield Text(f"  Z    {vector_text(outputs.result, 4)}  ({size} numbers{bias})", style="bold")
    yield Text()
