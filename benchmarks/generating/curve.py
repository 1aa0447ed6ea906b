"""The measured curve of docs/generation.md: a token's time with and without the cache, as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence

from measure import seconds

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 70, 150, 24, 48
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #57606a }
  .with { stroke: #1a7f37; fill: #1a7f37 } .without { stroke: #cf222e; fill: #cf222e }
  path { fill: none !important; stroke-width: 2 } line { stroke: #d0d7de }
  text.with, text.without { stroke: none; font-weight: 600 }
"""


def draw_curve(points: Sequence[tuple[int, float, float]]) -> str:
    """Points are (tokens before, seconds with the cache, seconds without); both axes are logs."""
    sizes = [size for size, _, _ in points]
    times = [took for _, *both in points for took in both]
    low, high = (round_(math.log10(bound)) for round_, bound in
                 ((math.floor, min(times)), (math.ceil, max(times))))  # fmt: skip

    def x(size: int) -> float:
        span = math.log(max(sizes) / min(sizes))
        return LEFT + (WIDTH - LEFT - RIGHT) * math.log(size / min(sizes)) / span

    def y(took: float) -> float:
        share = (math.log10(took) - low) / (high - low)
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share

    drawn = [_grid(10.0**power, y(10.0**power)) for power in range(low, high + 1)]
    drawn += [_label(x(size), HEIGHT - BOTTOM + 18, f"{size:,}", "middle") for size in sizes]
    middle = (LEFT + WIDTH - RIGHT) / 2
    drawn.append(_label(middle, HEIGHT - 8, "tokens before the new one", "middle"))
    for column, kind in ((1, "with"), (2, "without")):
        places = [(x(int(point[0])), y(point[column])) for point in points]
        drawn.append(_line(places, kind, f"{kind} the cache"))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'aria-label="Time for one more token, with and without the cache">\n'
        f'<style>{STYLE}</style>\n<rect width="100%" height="100%" fill="#ffffff"/>\n'
        + "\n".join(drawn)
        + "\n</svg>\n"
    )


def _grid(took: float, height: float) -> str:
    line = f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{height:.1f}" y2="{height:.1f}"/>'
    return line + _label(LEFT - 8, height + 4, seconds(took), "end")


def _label(left: float, top: float, text: str, anchor: str, kind: str = "") -> str:
    marked = f' class="{kind}"' if kind else ""
    return f'<text x="{left:.1f}" y="{top:.1f}" text-anchor="{anchor}"{marked}>{text}</text>'


def _line(places: Sequence[tuple[float, float]], kind: str, name: str) -> str:
    path = "M" + " L".join(f"{left:.1f},{top:.1f}" for left, top in places)
    dots = "".join(f'<circle cx="{left:.1f}" cy="{top:.1f}" r="3"/>' for left, top in places)
    last = places[-1]
    return (
        f'<g class="{kind}"><path d="{path}"/>{dots}</g>'
        + _label(last[0] + 10, last[1] + 4, name, "start", kind)
    )  # fmt: skip
