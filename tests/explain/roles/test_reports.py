from __future__ import annotations

from tests.shared.role_models import planted_roles


def test_causal_models_are_scored_in_the_direction_that_they_see() -> None:
    reports = {report.name: report for report in planted_roles(True).properties}
    assert reports["next token"].verdict == "cannot be seen"
    assert reports["det → head"].verdict == "cannot be seen"
    assert reports["det → head"].occurs > 300
    assert reports["head → det"].verdict == "scored"
    assert {r.name: r for r in planted_roles(False).properties}["det → head"].verdict == "scored"


def test_what_never_occurs_has_no_score() -> None:
    reports = {report.name: report for report in planted_roles(True).properties}
    assert reports["special token"].verdict == "never occurs"
    assert planted_roles(True).best("special token") is None
