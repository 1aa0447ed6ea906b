"""Parts of SVG pictures: rectangles, curves, texts, colours, estimated widths of words.

Nothing measures text here (there is no browser), so widths are estimated on the generous side and
every word is placed by its middle: with any font it stays where it belongs.
"""

from __future__ import annotations

import base64
import struct
import unicodedata
import zlib
from typing import TypeAlias

import numpy as np
from jaxtyping import Float, UInt8

from clearhead.explain.pictures import LOG_DECADES
from clearhead.views.escape import markup_text
from clearhead.views.numbers import weight_text

# The light colours of page/assets/colours.css; a test compares them.
INK, QUIET, LINE, PAPER, ACCENT = "#1b1d24", "#5f6470", "#e3e3df", "#ffffff", "#3a55c8"
RAMP = ("#f6f7fb", "#b9c6f2", "#4f6bd8", "#1c2a78")
# Of pictures alone: a lighter grey than the page's --masked, and a tint of ACCENT behind one row.
MASKED, TINT = "#f1f0ec", "#eef1fc"
FONT = "'Segoe UI', Roboto, 'Helvetica Neue', 'Noto Sans', 'DejaVu Sans', Arial, sans-serif"
MARGIN = 24.0

Number: TypeAlias = int | float


class Drawing:
    """A picture in the making."""

    def __init__(self) -> None:
        self._parts: list[str] = []

    def rect(
        self, x: Number, y: Number, width: Number, height: Number, fill: str, radius: Number = 0
    ) -> None:
        """A filled rectangle."""
        rounded = f' rx="{radius:g}"' if radius else ""
        self._parts.append(
            f'<rect x="{x:.5g}" y="{y:.5g}" width="{width:.5g}" height="{height:.5g}"'
            f'{rounded} fill="{fill}"/>'
        )

    def frame(
        self, x: Number, y: Number, width: Number, height: Number, colour: str, radius: Number = 0
    ) -> None:
        """The border of a rectangle."""
        self._parts.append(
            f'<rect x="{x:.5g}" y="{y:.5g}" width="{width:.5g}" height="{height:.5g}" '
            f'rx="{radius:g}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
        )

    def path(self, path: str, colour: str, width: Number = 1.0, opacity: Number = 1.0) -> None:
        """A line or curve."""
        self._parts.append(
            f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{width:.3g}" '
            f'stroke-opacity="{opacity:.3g}" stroke-linecap="round"/>'
        )

    def text(
        self,
        x: Number,
        y: Number,
        text: str,
        *,
        size: Number = 13,
        anchor: str = "start",
        fill: str = INK,
        bold: bool = False,
        rotation: Number = 0,
    ) -> None:
        """One line of text."""
        transform = f' transform="rotate({rotation:g} {x:.5g} {y:.5g})"' if rotation else ""
        weight = ' font-weight="600"' if bold else ""
        self._parts.append(
            f'<text x="{x:.5g}" y="{y:.5g}" font-size="{size:g}" text-anchor="{anchor}" '
            f'fill="{fill}"{weight}{transform}>{markup_text(text)}</text>'
        )

    def pixels(
        self, x: Number, y: Number, width: Number, height: Number, image: UInt8[np.ndarray, "y x 3"]
    ) -> None:
        """A picture of pixels, each drawn as a sharp rectangle."""
        data = base64.b64encode(png_of_pixels(image)).decode("ascii")
        self._parts.append(
            f'<image x="{x:.5g}" y="{y:.5g}" width="{width:.5g}" height="{height:.5g}" '
            f'preserveAspectRatio="none" style="image-rendering:pixelated" '
            f'href="data:image/png;base64,{data}"/>'
        )

    def svg(self, width: Number, height: Number, title: str) -> str:
        """The whole picture, on white."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" font-family="{FONT}">'
            f"<title>{markup_text(title)}</title>"
            f'<rect width="{width:.0f}" height="{height:.0f}" fill="{PAPER}"/>'
            f"{''.join(self._parts)}</svg>\n"
        )


def colour_at(share: Number) -> str:
    """The colour for a strength from 0 to 1."""
    red, green, blue = (int(part) for part in colours_at(np.array([share], dtype=np.float32))[0])
    return f"#{red:02x}{green:02x}{blue:02x}"


def colours_at(shares: Float[np.ndarray, "*shape"]) -> UInt8[np.ndarray, "*shape 3"]:
    """The colours for strengths from 0 to 1, as red, green and blue."""
    stops = np.array([[int(stop[at : at + 2], 16) for at in (1, 3, 5)] for stop in RAMP])
    places = np.clip(shares, 0, 1) * (len(RAMP) - 1)
    below = np.minimum(places.astype(int), len(RAMP) - 2)
    part = (places - below)[..., None]
    mixed = stops[below] * (1 - part) + stops[below + 1] * part
    return np.asarray(np.rint(mixed), dtype=np.uint8)


def ink_on(share: Number) -> str:
    """Dark or white ink, whichever reads better on the colour of a strength."""
    red, green, blue = (int(part) for part in colours_at(np.array([share], dtype=np.float32))[0])
    return INK if 0.299 * red + 0.587 * green + 0.114 * blue > 140 else PAPER


def shares_of(
    weights: Float[np.ndarray, "*shape"], most: float, colour: str
) -> Float[np.ndarray, "*shape"]:
    """The strength of each weight's colour, 0 to 1: linear, or logarithmic."""
    if colour == "log":
        logs = np.log10(np.maximum(weights, 1e-12) / max(most, 1e-4))
        return np.asarray(np.clip(logs / LOG_DECADES + 1, 0, 1), dtype=np.float32)
    return np.asarray(weights / most if most > 0 else np.zeros_like(weights), dtype=np.float32)


def text_width(text: str, size: Number = 13) -> float:
    """The estimated width of a text, rather too large than too small."""
    return float(sum(_character_width(character) for character in text) * size)


def _character_width(character: str) -> float:
    if unicodedata.combining(character) or character == "\u200d":
        return 0.0
    if unicodedata.east_asian_width(character) in "WF":
        return 1.05
    if character in "iljtfI.,;:'|!()[] ":
        return 0.36
    if character in "mwMW@%⏎":
        return 0.95
    return 0.7 if character.isupper() else 0.6


def shortened(text: str, most: int) -> str:
    """At most so many characters, the last of them … where some are missing."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def wrapped(text: str, width: Number, size: Number) -> list[str]:
    """A sentence in lines of at most some width."""
    lines, line = [], ""
    for word in text.split():
        if line and text_width(f"{line} {word}", size) > width:
            lines.append(line)
            line = ""
        line = f"{line} {word}".strip()
    return [*lines, line] if line else lines


def png_of_pixels(image: UInt8[np.ndarray, "y x 3"]) -> bytes:
    """An image file of plain pixels (PNG, 8 bits, RGB)."""
    height, width, _ = image.shape
    lines = np.concatenate([np.zeros((height, 1), np.uint8), image.reshape(height, -1)], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 6)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def draw_scale(
    drawing: Drawing, x: Number, y: Number, most: float, colour: str, measure: str = "weight"
) -> None:
    """The colour scale with its ends."""
    low = f"{max(most, 1e-4) / 10**LOG_DECADES:.2g}" if colour == "log" else "0"
    drawing.text(x, y + 10, low, size=12, fill=QUIET)
    start = x + text_width(low, 12) + 6
    steps = 40
    for step in range(steps):
        drawing.rect(start + step * 3, y, 3.3, 11, colour_at(step / (steps - 1)))
    end = f"{weight_text(most)}  {measure}{' (log)' if colour == 'log' else ''}"
    drawing.text(start + steps * 3 + 6, y + 10, end, size=12, fill=QUIET)


def draw_notes(
    drawing: Drawing, notes: tuple[str, ...], x: Number, y: Number, width: Number
) -> float:
    """Draw notes as small lines; return the y below them."""
    for note in notes:
        for line in wrapped(note, width, 11):
            drawing.text(x, y, line, size=11, fill=QUIET)
            y += 16
    return y
