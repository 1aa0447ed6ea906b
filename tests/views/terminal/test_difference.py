from __future__ import annotations

import re
from dataclasses import replace

from clearhead.views.terminal.difference import difference_parts
from clearhead.views.terminal.parts import Drawn
from tests.shared.golden_pictures import difference


def test_the_largest_changes_are_listed_with_their_sign() -> None:
    text = Drawn(lambda width: difference_parts(difference(), width)).plain(80)
    assert re.search(r"they → kids/lions +L1H0 +0\.60 +0\.10 +−0\.50", text)
    assert "gone" in text and "right" in text
    assert text.index("L1H0  ") < text.index("L0H1  ")


def test_one_head_alone_is_not_compared_with_others() -> None:
    one = replace(difference(), heads=difference().heads[:1])
    text = Drawn(lambda width: difference_parts(one, width)).plain(80)
    assert "Heads that changed most" not in text and "most in" not in text
