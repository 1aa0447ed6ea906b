"""``ch.roles``: what each head does, with evidence, as something that shows itself."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from clearhead.checkpoints.aside import written_aside
from clearhead.errors import InputError
from clearhead.explain.roles.corpus import CorpusLike
from clearhead.explain.roles.reports import HeadEvidence
from clearhead.explain.roles.roles import Roles, find_roles
from clearhead.views.roles_html import roles_fragment, roles_page
from clearhead.views.roles_svg import draw_roles
from clearhead.views.roles_tables import roles_csv, roles_json
from clearhead.views.roles_terminal import evidence_parts, roles_parts
from clearhead.views.shown import Shown
from clearhead.views.terminal_parts import Drawn


def roles(model: Any, corpus: CorpusLike = None, **options: Any) -> ShownRoles:
    """What each head of a model does on a corpus, with baselines, intervals and examples.

        ch.roles(ch.load("smollm2"), "dev.conllu")

    Takes what :func:`clearhead.explain.roles.roles.find_roles` takes. ``print`` and a notebook show
    the result; ``.save("roles.html")`` writes it (.html, .svg, .png, .csv, .json, .txt);
    ``.head("L16H5")`` is one head with its examples.
    """
    return ShownRoles(find_roles(model, corpus, **options))


class _Drawn(Shown):
    """An insight about roles in the terminal."""

    def _parts(self) -> Drawn:
        raise NotImplementedError

    def __rich__(self) -> Drawn:
        """What ``rich`` prints."""
        return self._parts()

    def __str__(self) -> str:
        return _plain(self._parts())

    __repr__ = __str__


class ShownRoles(_Drawn):
    """The roles of a model, in every format."""

    insight: Roles

    def __init__(self, insight: Roles) -> None:
        super().__init__(insight)

    def head(self, name: str) -> ShownHead:
        """One head with its roles, examples and effects."""
        return ShownHead(self.insight.evidence(name))

    def html(self, path: str | Path | None = None, *, open: bool = False) -> str | Path:
        """The page: written to ``path``, or as text."""
        del open
        return roles_page(self.insight) if path is None else self._write("html", path)

    def svg(self, path: str | Path | None = None) -> str | Path:
        """The picture for papers: written to ``path``, or as text."""
        return draw_roles(self.insight) if path is None else self._write("svg", path)

    def png(self, path: str | Path | None = None) -> bytes | Path:
        """The picture for slides: written to ``path``, or as bytes."""
        return _png(self.insight) if path is None else self._write("png", path)

    def csv(self, path: str | Path | None = None) -> str | Path:
        """The table: written to ``path``, or as text."""
        return roles_csv(self.insight) if path is None else self._write("csv", path)

    def json(self, path: str | Path | None = None) -> str | Path:
        """Everything: written to ``path``, or as text."""
        return roles_json(self.insight) if path is None else self._write("json", path)

    def _parts(self) -> Drawn:
        return Drawn(functools.partial(roles_parts, self.insight))

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": roles_fragment(self.insight)}

    def _write(self, name: str, path: str | Path) -> Path:
        formats: dict[str, Callable[[], bytes]] = {
            "html": lambda: roles_page(self.insight).encode(),
            "svg": lambda: draw_roles(self.insight).encode(),
            "png": lambda: _png(self.insight),
            "csv": lambda: roles_csv(self.insight).encode(),
            "json": lambda: roles_json(self.insight).encode(),
            "txt": lambda: (str(self) + "\n").encode(),
        }
        content, path = formats[name](), Path(path)
        try:
            with written_aside(path) as aside:
                aside.write_bytes(content)
        except OSError as error:
            raise InputError(f"{path} cannot be written: {error.strerror}.") from None
        return path


class ShownHead(_Drawn):
    """One head with its evidence, in the terminal and in a notebook."""

    insight: HeadEvidence

    def _parts(self) -> Drawn:
        return Drawn(functools.partial(evidence_parts, self.insight))

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": str(self)}


def _plain(drawn: Drawn, width: int = 80) -> str:
    import io

    from rich.console import Console

    console = Console(
        file=io.StringIO(), width=width, force_terminal=False, color_system=None, emoji=False,
        markup=False, highlight=False, legacy_windows=False,
    )  # fmt: skip
    console.print(drawn)
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())


def _png(roles: Roles) -> bytes:
    from clearhead.views import svg
    from clearhead.views.png import png

    svg.RENDERERS.setdefault(Roles, draw_roles)
    return png(roles)
