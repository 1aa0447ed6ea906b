"""Parts of terminal pictures: words cut to size, bars, shades and colours.

Strength is always drawn by a form as well (a bar, a shade, a number), so nothing is lost without
colour. Colours go from grey to blue: both stand out on light and on dark ground, and text on
them brings its own.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterable, Iterator

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from clearhead.explain.pictures import LOG_DECADES, Colour
from clearhead.visible import visible_lines, visible_text

SHADES = " ░▒▓█"
HEIGHTS = " ▁▂▃▄▅▆▇█"
EIGHTHS = " ▏▎▍▌▋▊▉█"
SHOWN_FROM = 0.05  # of the strongest: what is weaker is not drawn
LEAST = 0.005  # a weight that would be shown as 0.00 is not listed
FAINT, STRONG = (107, 114, 128), (79, 116, 249)
ACCENT = Style(color="#4f74f9", bold=True)  # STRONG
QUIET = Style(dim=True)


class Gated:
    """Anything that ``rich`` prints: its text is made visible, its colours stay."""

    def __init__(self, renderable: RenderableType) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        """The segments of the renderable; markup in its texts is only text."""
        plain = options.update(markup=False, highlight=False)
        for text, style, control in console.render(self._renderable, plain):
            yield Segment(text if control else visible_lines(text), style, control)


class Drawn:
    """A picture that is drawn for the width that there is."""

    def __init__(self, draw: Callable[[int], Iterable[RenderableType]]) -> None:
        self._draw = draw

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        """The parts that ``rich`` prints, with nothing in them that commands the terminal."""
        for part in self._draw(options.max_width):
            yield Gated(part)

    def parts(self, width: int) -> list[RenderableType]:
        """Everything, computed now."""
        return list(self._draw(width))

    def plain(self, width: int) -> str:
        """Everything as text without colour."""
        # In a notebook rich would show what it prints as an output of its own.
        console = Console(
            file=io.StringIO(), width=width, force_terminal=False, force_jupyter=False,
            color_system=None, emoji=False, markup=False, highlight=False, legacy_windows=False,
        )  # fmt: skip
        console.print(self)
        assert isinstance(console.file, io.StringIO)
        return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())


def level(strength: float, largest: float, colour: Colour = "linear") -> float:
    """The strength of a weight's colour, from 0 to 1: linear, or logarithmic."""
    if strength <= 0 or largest <= 0:
        return 0.0
    share = min(1.0, strength / largest)
    return share if colour == "linear" else max(0.0, 1 + math.log10(share) / LOG_DECADES)


def shade(height: float, signs: str = SHADES) -> str:
    """The sign for a level from 0 to 1; the first (nothing) below a twentieth."""
    if height < SHOWN_FROM:
        return signs[0]
    return signs[min(len(signs) - 1, math.ceil(height * (len(signs) - 1) - 1e-9))]


def indented(text: str, style: Style = QUIET) -> Padding:
    """A sentence that wraps with its indent."""
    return Padding(Text(text, style=style), (0, 0, 0, 2))


def plain_cell(text: str) -> Text:
    """A cell of a table: one line, as it is; square brackets in it are no markup."""
    return Text(visible_text(text))


def bar(share: float, width: int) -> str:
    """A bar of up to ``width`` cells, in eighths of a cell."""
    eighths = round(max(0.0, min(1.0, share)) * width * 8)
    return "█" * (eighths // 8) + (EIGHTHS[eighths % 8] if eighths % 8 else "")


def ink(height: float) -> Style:
    """The colour of a level, for signs."""
    return Style(color=_mixed(height))


def paint(height: float) -> Style:
    """The colour of a level, as the ground behind a word."""
    return Style(bgcolor=_mixed(height), color="#ffffff")


def cut(text: str, width: int) -> str:
    """A text in at most so many cells; … stands for what is left out."""
    text = visible_lines(text)
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + "…" if width > 1 else "…"[:width]


def padded(text: str, width: int) -> str:
    """A text in exactly so many cells."""
    return set_cell_size(cut(text, width), width)


def _mixed(height: float) -> str:
    parts = (round(a + (b - a) * height) for a, b in zip(FAINT, STRONG, strict=True))
    return "#" + "".join(f"{part:02x}" for part in parts)
