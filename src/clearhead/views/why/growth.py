"""How the sum grows from layer to layer: one bar for each layer, upwards for the token."""

from __future__ import annotations

from dataclasses import dataclass

from clearhead.explain.why.parts import LayerPart, Why
from clearhead.views.why.text import signed


@dataclass(frozen=True)
class Bar:
    """The sum behind one layer, as a rectangle; y counts downwards from the top of the chart."""

    layer: LayerPart
    x: float
    y: float
    width: float
    height: float

    @property
    def label(self) -> str:
        """The numbers of the bar: L3: sum +1.20; heads −0.10, feed-forward +0.30."""
        one = self.layer
        parts = (signed(number).strip() for number in (one.sum, one.heads, one.feed_forward))
        total, heads, feed_forward = parts
        return f"{one.name}: sum {total}; heads {heads}, feed-forward {feed_forward}"


@dataclass(frozen=True)
class Growth:
    """The bars, and the height at which the sum is 0."""

    bars: tuple[Bar, ...]
    zero: float


def growth_of(why: Why, width: float, height: float) -> Growth:
    """The chart of a sum in a box of this size; no bars where a single layer leaves no growth."""
    sums = [layer.sum for layer in why.layers]
    high, low = max(0.0, *sums, 0.0), min(0.0, *sums, 0.0)
    unit = height / ((high - low) or 1.0)
    zero, step = high * unit, width / max(1, len(sums))
    bars = (
        Bar(
            layer,
            number * step,
            zero - max(0.0, layer.sum) * unit,
            step * 0.85,
            abs(layer.sum) * unit,
        )
        for number, layer in enumerate(why.layers)
    )
    return Growth(tuple(bars) if len(sums) > 1 else (), zero)
