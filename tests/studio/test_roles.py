from pathlib import Path
from typing import Any

import pytest

from clearhead.studio import roles
from clearhead.studio.roles import KnownRoles
from tests.shared.explain_models import decoder
from tests.shared.planted_roles import shown
from tests.studio.heard import Heard, job_of


def test_roles_are_not_measured_unless_somebody_asks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CLEARHEAD_HOME", str(tmp_path))
    heard = Heard()
    KnownRoles().send(decoder(), job_of(heard), measure=False)
    assert heard.of("roles") == [{"kind": "roles", "id": 1, "known": False, "heads": {}}]


def test_roles_that_were_found_are_sent_again_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The second page of a model does not wait until they have been found once more."""
    monkeypatch.setenv("CLEARHEAD_HOME", str(tmp_path))
    calls: list[Any] = []
    found = shown().insight

    def counted(*given: Any, progress: Any, **options: Any) -> Any:
        calls.append(given)
        progress("counting")(1, 2)
        return found

    monkeypatch.setattr(roles, "find_roles", counted)
    heard, known, loaded = Heard(), KnownRoles(), decoder()
    for measure in (True, False, True):
        known.send(loaded, job_of(heard), measure=measure)
    first, *others = heard.of("roles")
    assert first["known"] and first["heads"] == roles.described(found)
    assert others == [first, first] and len(calls) == 1


def test_measuring_pauses_for_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CLEARHEAD_HOME", str(tmp_path))
    found, between = shown().insight, []

    def counted(*_given: Any, progress: Any, **_options: Any) -> Any:
        for done in range(3):
            progress("counting")(done, None)
        return found

    monkeypatch.setattr(roles, "find_roles", counted)
    job = job_of(Heard())
    job.others = lambda: between.append(1)
    KnownRoles().send(decoder(), job, measure=True)
    assert len(between) == 3


def test_roles_come_with_their_evidence() -> None:
    found = shown().insight
    described = roles.described(found)
    role = found.named[0]
    assert described[role.head] and "of" in described[role.head][0]["evidence"]
    assert set(described) == {one.head for one in found.named}
