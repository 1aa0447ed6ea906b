"""The losses of a run as a picture: in text for a terminal, in SVG for everything else."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from xml.sax.saxutils import escape

from clearhead.visible import visible_text

Points: TypeAlias = Sequence[tuple[int, float]]  # step, loss
POINTS_DRAWN = 200
TRAINING, VALIDATION = "#9aa0a6", "#1a73e8"  # of its own: views/ comes later


@dataclass(frozen=True)
class Curve:
    """Training losses, averaged over short runs of steps, and validation losses."""

    training: Points
    validation: Points

    @classmethod
    def from_log(cls, lines: Iterable[Mapping[str, Any]]) -> Curve:
        """From the lines of a run's log."""
        training: list[tuple[int, float]] = []
        validation: list[tuple[int, float]] = []
        for line in lines:
            if "validation" in line:
                validation.append((line["step"], line["validation"]))
            elif "loss" in line:
                training.append((line["step"], line["loss"]))
        return cls(_thinned(training), validation)

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

        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            'font-family="sans-serif" font-size="12">',
            f'<rect width="{width}" height="{height}" fill="white"/>',
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
