"""Golden renderings at fixed widths, and that nothing is lost without colour."""

from __future__ import annotations

import io
import re

import pytest
from rich.cells import cell_len
from rich.console import Console

from clearhead.errors import InputError
from clearhead.views.terminal.render import plain_text, show
from tests.shared.golden_pictures import FOLDER, HOSTILE, INSIGHTS, KIDS, gallery, head, word


@pytest.mark.parametrize("name", INSIGHTS)
def test_golden(name: str) -> None:
    insight, width = INSIGHTS[name]
    assert plain_text(insight, width) + "\n" == (FOLDER / f"{name}.txt").read_text()


@pytest.mark.parametrize("name", INSIGHTS)
def test_nothing_is_wider_than_the_terminal(name: str) -> None:
    insight, width = INSIGHTS[name]
    if width >= 50:
        assert max(cell_len(line) for line in plain_text(insight, width).splitlines()) <= width


def coloured(insight: object) -> str:
    console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system="truecolor")
    console.print(show(insight))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_colour_adds_nothing_but_colour() -> None:
    for insight in (word(KIDS, 9), head(KIDS), gallery()):
        drawn = coloured(insight)
        assert "\x1b[" in drawn
        plain = re.sub(r"\x1b\[[0-9;]*m", "", drawn)
        lines = [line.rstrip() for line in plain.splitlines()]
        assert "\n".join(lines) == plain_text(insight)


def test_no_color_is_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    drawn = coloured(word(KIDS, 9))
    assert not re.search(r"\x1b\[[0-9;]*(3[0-7]|38|48)[0-9;]*m", drawn)


def test_hostile_tokens_cannot_speak_to_the_terminal() -> None:
    text = plain_text(head(HOSTILE)) + plain_text(word(HOSTILE, 8))
    assert "\x1b" not in text


def test_what_cannot_be_shown_is_named() -> None:
    with pytest.raises(InputError, match=r"the terminal shows Look, HeadPicture.*; int came"):
        show(3)
