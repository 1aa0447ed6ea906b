"""``Shown``: an insight that shows itself, in a terminal, in a notebook and in files."""

from __future__ import annotations

import tempfile
import webbrowser
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, TypeVar, overload

from clearhead.arguments import flag
from clearhead.arguments import path as path_argument
from clearhead.errors import InputError
from clearhead.files.atomic_write import atomic_write
from clearhead.views.formats import FORMATS
from clearhead.views.terminal.parts import Drawn
from clearhead.views.terminal.render import plain_text, show

REPR_LINES = 80  # of the picture; print shows all of it

Insight = TypeVar("Insight", covariant=True)


class Shown(Generic[Insight]):
    """An insight with its pictures: what ``ch.look``, ``ch.steps``, ``ch.diff``, ``ch.roles`` give.

    ``print`` and a notebook show it. ``save("picture.svg")`` writes it in the format of the ending:
    .html, .svg, .png, .csv, .json or .txt. ``insight`` is the plain data that is shown; each
    subclass has all of its attributes and methods as well.
    """

    formats: ClassVar[Mapping[str, Callable[[Any], bytes]]] = FORMATS

    def __init__(self, insight: Insight) -> None:
        self._insight = insight

    @property
    def insight(self) -> Insight:
        """The plain data, without any output format in it."""
        return self._insight

    def __rich__(self) -> Drawn:
        """The picture for ``rich``, drawn for the width of its console."""
        return show(self.insight)

    def __str__(self) -> str:
        return plain_text(self.insight)

    def __repr__(self) -> str:
        """The picture, so that an interactive Python shows it; of a very long one the beginning."""
        lines = str(self).splitlines()
        if len(lines) > REPR_LINES:
            left = len(lines) - REPR_LINES
            lines[REPR_LINES:] = [f"  … {left} more lines: print() shows them."]
        return "\n".join(lines)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """The picture for a notebook."""
        from clearhead.views.notebook import notebook_html

        return {"text/plain": str(self), "text/html": notebook_html(self.insight)}

    @overload
    def html(self, path: None = None, *, open: Literal[False] = False) -> str: ...
    @overload
    def html(self, path: None = None, *, open: Literal[True]) -> Path: ...
    @overload
    def html(self, path: str | Path, *, open: bool = False) -> Path: ...
    def html(self, path: str | Path | None = None, *, open: bool = False) -> str | Path:
        """The page: written to ``path``, or as text; ``open`` shows it in a browser."""
        open = flag("open", open)
        if path is None and not open:
            return self._bytes("html").decode()
        if path is None:
            path = Path(tempfile.mkdtemp(prefix="clearhead-")) / "look.html"
        written = self._write("html", path)
        if open:
            webbrowser.open(written.resolve().as_uri())
        return written

    @overload
    def svg(self, path: None = None) -> str: ...
    @overload
    def svg(self, path: str | Path) -> Path: ...
    def svg(self, path: str | Path | None = None) -> str | Path:
        """The picture for papers: written to ``path``, or as text."""
        return self._bytes("svg").decode() if path is None else self._write("svg", path)

    @overload
    def png(self, path: None = None) -> bytes: ...
    @overload
    def png(self, path: str | Path) -> Path: ...
    def png(self, path: str | Path | None = None) -> bytes | Path:
        """The picture for slides: written to ``path``, or as bytes."""
        return self._bytes("png") if path is None else self._write("png", path)

    @overload
    def csv(self, path: None = None) -> str: ...
    @overload
    def csv(self, path: str | Path) -> Path: ...
    def csv(self, path: str | Path | None = None) -> str | Path:
        """The numbers as a table: written to ``path``, or as text."""
        return self._bytes("csv").decode() if path is None else self._write("csv", path)

    @overload
    def json(self, path: None = None) -> str: ...
    @overload
    def json(self, path: str | Path) -> Path: ...
    def json(self, path: str | Path | None = None) -> str | Path:
        """The numbers with their words: written to ``path``, or as text."""
        return self._bytes("json").decode() if path is None else self._write("json", path)

    def save(self, path: str | Path) -> Path:
        """Write the file in the format of its ending: .html, .svg, .png, .csv, .json or .txt."""
        path = path_argument("path", path)
        suffix = path.suffix.lower().removeprefix(".")
        if suffix not in self.formats:
            endings = ", ".join(f".{name}" for name in self.formats)
            raise InputError(f"path: {path} does not say what to write: endings are {endings}.")
        return self._write(suffix, path)

    def _bytes(self, name: str) -> bytes:
        if name not in self.formats:
            known = ", ".join(self.formats)
            raise InputError(f"{name} is no format of this; there are {known}.")
        return self.formats[name](self.insight)

    def _write(self, name: str, path: str | Path) -> Path:
        path = path_argument("path", path)
        content = self._bytes(name)
        try:
            with atomic_write(path) as temporary:
                temporary.write_bytes(content)
        except OSError as error:
            raise InputError(f"path: {path} cannot be written: {error.strerror}.") from None
        return path
