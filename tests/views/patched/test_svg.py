from __future__ import annotations

import pytest

from clearhead.views.why.text import signed
from tests.shared.patched_models import shown_patch_map
from tests.shared.svg_elements import texts

pytestmark = pytest.mark.usefixtures("one_thread")


def test_the_picture_has_the_same_numbers() -> None:
    drawn = texts(shown_patch_map().svg())
    for head in shown_patch_map().strongest[:8]:
        assert head.name in drawn and signed(head.share) in drawn
    assert "cd/cx" in drawn
    assert shown_patch_map().png()[:8] == b"\x89PNG\r\n\x1a\n"
