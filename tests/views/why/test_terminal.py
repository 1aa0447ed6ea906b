from __future__ import annotations

import re

import pytest

from clearhead.views.terminal.render import plain_text
from clearhead.views.why.text import signed
from tests.shared.explained_models import shown_why

pytestmark = pytest.mark.usefixtures("one_thread")


def test_the_terminal_shows_words_heads_sum_and_proof() -> None:
    text = str(shown_why())
    assert max(map(len, text.splitlines())) <= 80
    assert "Why “#13” and not “#29”?" in text
    for part in shown_why().heads[:8]:
        assert re.search(rf"{part.name} +{re.escape(signed(part.value))} ", text)
    assert f"sum                     {signed(shown_why().total):>6}".split() == [
        "sum", signed(shown_why().total).strip(),
    ]  # fmt: skip
    assert "exact, to" in text and "Ablated one by one" in text
    assert text == str(shown_why()) and repr(shown_why()).startswith(text.splitlines()[0])


@pytest.mark.parametrize("width", [40, 60, 80, 132])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    lines = plain_text(shown_why().insight, width).splitlines()
    assert max(map(len, lines)) <= width
