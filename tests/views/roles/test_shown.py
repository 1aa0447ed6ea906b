"""Pictures of roles: the same numbers everywhere, nothing from outside unescaped, no network."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from clearhead.errors import InputError
from clearhead.explain.roles.roles import find_roles
from clearhead.views.roles.shown import ShownRoles, roles
from tests.shared.planted_roles import shown

HOSTILE = '</script><b>&"]]>'


def test_files_are_written_by_their_ending(tmp_path: Path) -> None:
    for ending in ("html", "svg", "csv", "json", "txt"):
        assert shown().save(tmp_path / f"roles.{ending}").stat().st_size > 500
    assert (tmp_path / "roles.txt").read_text() == str(shown()) + "\n"
    with pytest.raises(InputError, match="does not say what to write"):
        shown().save(tmp_path / "roles.doc")
    with pytest.raises(InputError, match="cannot be written"):
        shown().save(tmp_path / "no" / "roles.csv")


def test_the_page_can_be_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    written = shown().html(open=True)
    assert isinstance(written, Path) and opened == [written.resolve().as_uri()]
    assert written.read_text("utf-8") == shown().html()


def test_a_head_is_told_in_words_only() -> None:
    with pytest.raises(InputError, match=r"SVG shows one of .*Roles.*; HeadEvidence came"):
        shown().head("L0H0").svg()


def test_the_parameters_are_those_of_find_roles() -> None:
    ours, theirs = (inspect.signature(one).parameters for one in (roles, find_roles))
    assert [(one.name, one.kind, one.default) for one in ours.values()] == [
        (one.name, one.kind, one.default) for one in theirs.values()
    ]
    hints = get_type_hints(roles)
    assert hints["return"] is ShownRoles and Any not in hints.values()


def test_a_model_is_loaded_by_its_name() -> None:
    found = roles("dates", ["3rd of March 2021", "March 5, 1999"], interventions=0)
    assert found.model == "dates" and found.title.endswith("no role found")
    assert found.best("previous token") is None
