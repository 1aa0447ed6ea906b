from __future__ import annotations

from pathlib import Path

import pytest

from clearhead.views.why.text import signed
from tests.shared.chromium import page_at
from tests.shared.patched_models import shown_patch_map

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.browser
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (400, True)])
def test_cells_say_their_numbers(tmp_path: Path, width: int, dark: bool) -> None:
    found = shown_patch_map()
    with page_at(tmp_path, found.html(), width=width, dark=dark) as page:
        assert page.locator("h1").inner_text() == "What makes it “a” here and “b” there?"
        maps = page.locator("table.map")
        assert maps.count() == 4
        states = maps.first.locator("tr").nth(1).locator("td")
        assert states.first.get_attribute("title") == (
            f"L0 cd/cx: {signed(found.states[0, 2]).strip()}"
        )
        head = maps.last.locator("tr").nth(3).locator("td").nth(1)
        assert head.get_attribute("title") == f"L1H2: {signed(found.heads[1, 2]).strip()}"
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
