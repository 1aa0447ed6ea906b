"""``ch.roles``: what each head does, with evidence, as something that shows itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from clearhead.checkpoints.aside import written_aside
from clearhead.errors import InputError
from clearhead.explain.roles.corpus import CorpusLike
from clearhead.explain.roles.reports import HeadEvidence
from clearhead.explain.roles.roles import Roles, find_roles
from clearhead.views import svg, tables, terminal
from clearhead.views.roles_html import roles_frame, roles_page
from clearhead.views.roles_svg import draw_roles
from clearhead.views.roles_tables import role_rows, roles_json
from clearhead.views.roles_terminal import evidence_parts, roles_parts
from clearhead.views.shown import Shown

# Entered here and not there, so that a look need not load what roles consist of.
terminal.RENDERERS |= {Roles: roles_parts, HeadEvidence: evidence_parts}
svg.RENDERERS[Roles] = draw_roles
tables.CSV[Roles] = role_rows
OWN: dict[str, Callable[[Roles], str]] = {"html": roles_page, "json": roles_json}


def roles(model: Any, corpus: CorpusLike = None, **options: Any) -> ShownRoles:
    """What each head of a model does on a corpus, with baselines, intervals and examples.

        ch.roles(ch.load("smollm2"), "dev.conllu")

    Takes what :func:`clearhead.explain.roles.roles.find_roles` takes. ``print`` and a notebook show
    the result; ``.save("roles.html")`` writes it (.html, .svg, .png, .csv, .json, .txt);
    ``.head("L16H5")`` is one head with its examples.
    """
    return ShownRoles(find_roles(model, corpus, **options))


class ShownRoles(Shown):
    """The roles of a model, in every format; page and JSON are its own."""

    insight: Roles

    def head(self, name: str) -> ShownHead:
        """One head with its roles, examples and effects."""
        return self.evidence(name)

    def evidence(self, name: str, most: int = 5) -> ShownHead:
        """The same, with so many of its best scores."""
        return ShownHead(self.insight.evidence(name, most))

    def html(self, path: str | Path | None = None, *, open: bool = False) -> str | Path:
        """The page: written to ``path``, or as text; ``open`` shows it in a browser."""
        if path is None and not open:
            return roles_page(self.insight)
        return super().html(path, open=open)

    def json(self, path: str | Path | None = None) -> str | Path:
        """Everything: written to ``path``, or as text."""
        return roles_json(self.insight) if path is None else self._write("json", path)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        bundle = super()._repr_mimebundle_()
        return bundle | {"text/html": roles_frame(self.insight, bundle["text/html"])}

    def _write(self, name: str, path: str | Path) -> Path:
        if name not in OWN:
            return super()._write(name, path)
        path, content = Path(path), OWN[name](self.insight)
        try:
            with written_aside(path) as aside:
                aside.write_text(content, encoding="utf-8")
        except OSError as error:
            raise InputError(f"{path} cannot be written: {error.strerror}.") from None
        return path


class ShownHead(Shown):
    """One head with its evidence, in the terminal and as plain text."""

    insight: HeadEvidence

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": str(self)}
