"""``Shown``: an insight that shows itself, in a terminal, in a notebook and in files."""

from __future__ import annotations

import tempfile
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Any

from clearhead.checkpoints.aside import written_aside
from clearhead.errors import InputError
from clearhead.views.still import one_head, one_picture
from clearhead.views.terminal import plain_text, show


def _html(insight: object) -> bytes:
    from clearhead.views.html import html_page

    return html_page(insight).encode()


def _svg(insight: object) -> bytes:
    from clearhead.views.svg import svg

    return svg(one_picture(insight)).encode()


def _png(insight: object) -> bytes:
    from clearhead.views.png import png

    return png(one_picture(insight))


def _csv(insight: object) -> bytes:
    from clearhead.views.tables import csv_text

    return csv_text(one_head(insight)).encode()


def _json(insight: object) -> bytes:
    from clearhead.views.tables import json_text

    return json_text(one_head(insight)).encode()


def _text(insight: object) -> bytes:
    return (plain_text(insight) + "\n").encode()


FORMATS: dict[str, Callable[[object], bytes]] = {
    "html": _html, "svg": _svg, "png": _png, "csv": _csv, "json": _json, "txt": _text,
}  # fmt: skip


class Shown:
    """An insight with its pictures. Everything that the insight has can be asked of it, too.

    ``print`` and a notebook show it. ``save("picture.svg")`` writes it in the format that the
    ending says: .html, .svg, .png, .csv, .json or .txt. Of a whole look, HTML has everything; SVG
    and PNG draw where the chosen word looks, CSV and JSON hold the chosen head's numbers: for
    others save ``look.head("L16H5")``, ``look.word("they")`` or ``look.gallery()``.
    """

    def __init__(self, insight: Any) -> None:
        self.insight = insight

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "insight":
            raise AttributeError(name)
        found = getattr(self.insight, name)
        return _showing(found) if callable(found) else found

    def __rich__(self) -> Any:
        """What ``rich`` prints."""
        return show(self.insight)

    def __str__(self) -> str:
        return plain_text(self.insight)

    __repr__ = __str__

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """What a notebook shows."""
        from clearhead.views.notebook import notebook_html

        return {"text/plain": str(self), "text/html": notebook_html(self.insight)}

    def html(self, path: str | Path | None = None, *, open: bool = False) -> str | Path:
        """The interactive page: written to ``path``, or as text; ``open`` shows it in a browser."""
        if path is None and not open:
            return _html(self.insight).decode()
        if path is None:
            folder = Path(tempfile.mkdtemp(prefix="clearhead-"))
            path = folder / "look.html"
        written = self._write("html", path)
        if open:
            webbrowser.open(written.resolve().as_uri())
        return written

    def svg(self, path: str | Path | None = None) -> str | Path:
        """The picture for papers: written to ``path``, or as text."""
        return _svg(self.insight).decode() if path is None else self._write("svg", path)

    def png(self, path: str | Path | None = None) -> bytes | Path:
        """The picture for slides: written to ``path``, or as bytes."""
        return _png(self.insight) if path is None else self._write("png", path)

    def csv(self, path: str | Path | None = None) -> str | Path:
        """The numbers as a table: written to ``path``, or as text."""
        return _csv(self.insight).decode() if path is None else self._write("csv", path)

    def json(self, path: str | Path | None = None) -> str | Path:
        """The numbers with their words: written to ``path``, or as text."""
        return _json(self.insight).decode() if path is None else self._write("json", path)

    def save(self, path: str | Path) -> Path:
        """Write in the format that the ending of the path says."""
        suffix = Path(path).suffix.lower().removeprefix(".")
        if suffix not in FORMATS:
            endings = ", ".join(f".{name}" for name in FORMATS)
            raise InputError(f"{path} does not say what to write: endings are {endings}.")
        return self._write(suffix, path)

    def _write(self, name: str, path: str | Path) -> Path:
        path = Path(path)
        content = FORMATS[name](self.insight)
        try:
            with written_aside(path) as aside:
                aside.write_bytes(content)
        except OSError as error:
            raise InputError(f"{path} cannot be written: {error.strerror}.") from None
        return path


def _showing(method: Callable[..., Any]) -> Callable[..., Any]:
    """The insight's method, whose result shows itself where it can be shown."""

    def shown(*args: Any, **options: Any) -> Any:
        found = method(*args, **options)
        return Shown(found) if _can_be_shown(found) else found

    shown.__doc__ = method.__doc__
    return shown


def _can_be_shown(found: object) -> bool:
    from clearhead.views.terminal import RENDERERS

    return isinstance(found, tuple(RENDERERS))
