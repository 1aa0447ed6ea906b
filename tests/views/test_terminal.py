"""Golden renderings at fixed widths, and that nothing is lost without colour."""

from __future__ import annotations

import io
import re

import pytest
from golden_pictures import FOLDER, HOSTILE, INSIGHTS, KIDS, gallery, head, word
from rich.cells import cell_len
from rich.console import Console

from clearhead.errors import InputError
from clearhead.explain.worked_examples import worked_example
from clearhead.views.terminal import plain_text, show
from clearhead.views.terminal_gallery import telling_grid
from clearhead.views.terminal_parts import bar, cut, level, number_text, shade, vector_text


@pytest.mark.parametrize("name", INSIGHTS)
def test_golden(name: str) -> None:
    insight, width = INSIGHTS[name]
    assert plain_text(insight, width) + "\n" == (FOLDER / f"{name}.txt").read_text()


@pytest.mark.parametrize("name", INSIGHTS)
def test_nothing_is_wider_than_the_terminal(name: str) -> None:
    insight, width = INSIGHTS[name]
    if width >= 50:
        assert max(cell_len(line) for line in plain_text(insight, width).splitlines()) <= width


GOLDEN_ACTION = """\
where 'Action' looks
Action asks with q = [2 2 2 2]

 Word                k             v  score  score/2  softmax     softmax·v
 ──────────────────────────────────────────────────────────────────────────
 Action         [2 2…]        [2 2…]     16        8     0.03  [0.05 0.05…]
 gets     [4.54 2.84…]  [2.84 5.08…]  21.57    10.78     0.43  [1.22 2.17…]
 results  [3.58 4.91…]  [4.91 1.17…]  22.05    11.03     0.55  [2.68 0.64…]

 sum                                                     1.00  [3.95 2.86…]
"""


def test_action_at_80_columns() -> None:
    drawn = plain_text(worked_example("action")[0]).splitlines()
    assert drawn[: GOLDEN_ACTION.count("\n")] == GOLDEN_ACTION.splitlines()


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


def test_the_asking_word_and_its_sources_have_their_numbers() -> None:
    picture = word(KIDS, 9)
    text = plain_text(picture)
    for source in picture.sources[:6]:
        assert re.search(rf"{re.escape(source.mark.text)} +{source.weight:.2f}", text)
    assert f"{picture.hidden_mass:.2f}" in text


def test_the_grid_marks_the_chosen_head() -> None:
    parts = gallery()
    lines = [str(line) for line in telling_grid(parts.names, parts.telling, "L1H1", 80)]
    assert "◆" in lines[2] and sum(line.count("◆") for line in lines) == 1
    many = [[f"L{i}H0"] for i in range(100)]
    wide = [str(line) for line in telling_grid(many, [[0.5]] * 100, None, 50)]
    assert len(wide) == 6 and max(map(len, wide)) <= 50


def test_numbers_and_forms() -> None:
    assert number_text(3.0) == "3"
    assert number_text(-1.5) == "−1.50"
    assert vector_text((1.0, -2.0, 3.0), 4) == "[1 −2 3]"
    assert vector_text((0.5, -0.001, 3.0), 2) == "[0.50 0.00…]"
    assert bar(0.5, 4) == "██" and bar(0.03125, 4) == "▏" and bar(0.0, 4) == ""
    assert [shade(x) for x in (0.0, 0.04, 0.2, 0.5, 0.7, 1.0)] == [" ", " ", "░", "▒", "▓", "█"]
    assert cut("abcdef", 4) == "abc…" and cell_len(cut("你好世界", 5)) <= 5
    assert level(0.1, 1.0, "log") == pytest.approx(2 / 3)
    assert level(0.3, 0.6) == 0.5 and level(0.0, 0.0) == 0.0


def test_what_cannot_be_shown_is_named() -> None:
    with pytest.raises(InputError, match=r"the terminal shows Look, HeadPicture.*; int came"):
        show(3)
