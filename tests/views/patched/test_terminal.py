from __future__ import annotations

import pytest

from clearhead.views.terminal.render import plain_text
from clearhead.views.why.text import signed
from tests.shared.patched_models import shown_patch_map

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("width", [40, 60, 80, 132])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    lines = plain_text(shown_patch_map().insight, width).splitlines()
    assert max(map(len, lines)) <= width


def test_maps_and_heads_are_drawn() -> None:
    text = str(shown_patch_map())
    best = shown_patch_map().strongest[0]
    assert f"{best.name:<8} {signed(best.share):>6}" in text
    rows = [line for line in text.splitlines() if line.strip().startswith("cd/cx")]
    assert len(rows) == 3 and "▒▒" in rows[0]
    assert "0 is this text's answer" in " ".join(text.split())
