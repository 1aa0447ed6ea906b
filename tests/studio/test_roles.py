from pathlib import Path

import pytest

from clearhead.studio import roles
from tests.shared.explain_models import decoder
from tests.shared.planted_roles import shown
from tests.studio.heard import Heard, job_of


def test_roles_are_not_measured_unless_somebody_asks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CLEARHEAD_HOME", str(tmp_path))
    heard = Heard()
    roles.send_roles(decoder(), job_of(heard), measure=False)
    assert heard.of("roles") == [{"kind": "roles", "id": 1, "known": False, "heads": {}}]


def test_roles_come_with_their_evidence() -> None:
    found = shown().insight
    described = roles.described(found)
    role = found.named[0]
    assert described[role.head] and "of" in described[role.head][0]["evidence"]
    assert set(described) == {one.head for one in found.named}
