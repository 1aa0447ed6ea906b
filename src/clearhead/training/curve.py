"""The losses of a run as a picture: in text for a terminal, in SVG for everything else.

The SVG shows the rest of the log below them: learning rate, norm of the gradient, and of each head
the entropy of its weights, its largest score and its weight on the first token, at each validation.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from xml.sax.saxutils import escape

from clearhead.visible import visible_text

Points: TypeAlias = Sequence[tuple[int, float]]  # step, loss
POINTS_DRAWN = 200
PANEL_HEIGHT, PANELS_BESIDE, HUE = 150, 2, 210
OF_STEPS = {"learning_rate": "learning rate", "gradient": "norm of the gradient"}
OF_HEADS = {
    "entropy": "entropy of each head, bits", "score": "largest score of each head",
    "first": "weight on the first token, each head",
}  # fmt: skip
TRAINING, VALIDATION = "#9aa0a6", "#1a73e8"  # of its own: views/ comes later


@dataclass(frozen=True)
class Panel:
    """One small picture: a title, and lines over the steps by name."""

    title: str
    lines: Mapping[str, Points]

    def svg(self, last: int, width: int, place: tuple[int, int]) -> str:
        """As a part of an SVG picture; a line that is pointed at says its name."""
        values = [value for points in self.lines.values() for _, value in points]
        low, high = min(values), max(values)
        high = high if high > low else low + 1.0
        left, top, right, bottom = 60, 24, width - 20, PANEL_HEIGHT - 22
        parts = [
            f'<g transform="translate({place[0]} {place[1]})">',
            f'<text x="{left}" y="14">{escape(self.title)}</text>',
            f'<path d="M{left} {top}V{bottom}H{right}" stroke="#e0e0e0" fill="none"/>',
        ]
        for value, y in ((high, top + 8), (low, bottom)):
            parts.append(f'<text x="{left - 8}" y="{y}" text-anchor="end">{value:.3g}</text>')
        for number, (name, points) in enumerate(self.lines.items()):
            spots = [
                (
                    left + step / last * (right - left),
                    bottom - (v - low) / (high - low) * (bottom - top),
                )
                for step, v in points
            ]
            colour = (
                f"hsl({HUE + 137 * number % 360} 60% 45%)" if len(self.lines) > 1 else VALIDATION
            )
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
            parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}">'
                         f"<title>{escape(name)}</title></polyline>")  # fmt: skip
        return "\n".join([*parts, "</g>"])


@dataclass(frozen=True)
class Curve:
    """Training losses, averaged over short runs of steps, and validation losses."""

    training: Points
    validation: Points
    panels: tuple[Panel, ...] = ()  # smaller pictures below

    @classmethod
    def from_log(cls, lines: Iterable[Mapping[str, Any]]) -> Curve:
        """From the lines of a run's log."""
        training: list[tuple[int, float]] = []
        validation: list[tuple[int, float]] = []
        lines = list(lines)
        for line in lines:
            if "validation" in line:
                validation.append((line["step"], line["validation"]))
            elif "loss" in line:
                training.append((line["step"], line["loss"]))
        return cls(_thinned(training), validation, tuple(_panels(lines)))

    def text(self, width: int = 60, height: int = 10) -> str:
        """As lines of text: · a training loss, ● a validation loss."""
        if not self.training and not self.validation:
            return "no steps yet"
        low, high, last = self._bounds()
        rows = [[" "] * width for _ in range(height)]
        for points, sign in ((self.training, "·"), (self.validation, "●")):
            for step, loss in points:
                column = min(width - 1, int(step / last * (width - 1)))
                row = min(height - 1, max(0, round((high - loss) / (high - low) * (height - 1))))
                rows[row][column] = sign
        labels = {0: f"{high:.2f}", height - 1: f"{low:.2f}"}
        drawn = [f"{labels.get(n, ''):>7} ┤{''.join(row).rstrip()}" for n, row in enumerate(rows)]
        axis = f"{'':>7} └{'─' * width}"
        steps = f"{'':>8} 0{f'step {last:.0f}':>{width - 1}}"
        return "\n".join([*drawn, axis, steps, f"{'':>9}· training   ● validation"])

    def svg(self, title: str = "loss", width: int = 720, height: int = 400) -> str:
        """As an SVG picture, axes and legend included."""
        low, high, last = self._bounds()
        left, top, right, bottom = 60, 40, width - 20, height - 50

        def place(step: int | float, loss: float) -> str:
            x = left + step / last * (right - left)
            y = top + (high - loss) / (high - low) * (bottom - top)
            return f"{x:.1f},{min(max(y, top), bottom):.1f}"

        whole = height + PANEL_HEIGHT * -(-len(self.panels) // PANELS_BESIDE)
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {whole}" '
            'font-family="sans-serif" font-size="12">',
            f'<rect width="{width}" height="{whole}" fill="white"/>',
            f'<text x="{left}" y="22" font-size="15">{escape(visible_text(title))}</text>',
        ]
        for tick in range(5):
            loss = low + (high - low) * tick / 4
            y = float(place(0, loss).split(",")[1])
            parts.append(f'<path d="M{left} {y}H{right}" stroke="#e0e0e0"/>')
            parts.append(f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{loss:.2f}</text>')
            step = last * tick / 4
            x = float(place(step, low).split(",")[0])
            parts.append(f'<text x="{x}" y="{bottom + 18}" text-anchor="middle">{step:.0f}</text>')
        parts.append(
            f'<text x="{(left + right) / 2}" y="{height - 10}" text-anchor="middle">step</text>'
        )
        for name, points, colour in (
            ("training", self.training, TRAINING),
            ("validation", self.validation, VALIDATION),
        ):
            line = " ".join(place(step, loss) for step, loss in points)
            parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}"/>')
            x = right - (170 if name == "training" else 80)
            parts.append(f'<text x="{x}" y="22" fill="{colour}">{name}</text>')
        for number, panel in enumerate(self.panels):
            row, column = divmod(number, PANELS_BESIDE)
            size = width // PANELS_BESIDE
            place_of_panel = (size * column, height + PANEL_HEIGHT * row)
            parts.append(panel.svg(last, size, place_of_panel))
        return "\n".join([*parts, "</svg>", ""])

    def _bounds(self) -> tuple[float, float, int]:
        """Lowest and highest loss and last step; losses that are not finite do not count."""
        points = [*self.training, *self.validation]
        losses = sorted(loss for _, loss in points if math.isfinite(loss)) or [0.0]
        low, high = losses[0], losses[-1]
        return low, high if high > low else low + 1.0, max((s for s, _ in points), default=1) or 1


def _thinned(points: Points) -> Points:
    """At most about POINTS_DRAWN points: each the mean of a run of steps."""
    size = max(1, math.ceil(len(points) / POINTS_DRAWN))
    runs = (points[at : at + size] for at in range(0, len(points), size))
    return [(run[-1][0], sum(loss for _, loss in run) / len(run)) for run in runs]


def _panels(lines: Sequence[Mapping[str, Any]]) -> Iterator[Panel]:
    """The pictures that there is something to show in."""
    for name, title in OF_STEPS.items():
        points = [(line["step"], line[name]) for line in lines if name in line]
        if points:
            yield Panel(title, {title: _thinned(points)})
    for name, title in OF_HEADS.items():
        found: dict[str, list[tuple[int, float]]] = {}
        for line in lines:
            for head, numbers in line.get("heads", {}).items():
                if name in numbers:
                    found.setdefault(head, []).append((line["step"], numbers[name]))
        if found:
            yield Panel(title, found)
