"""Golden renderings at a fixed width."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from clearhead.explain.worked_examples import worked_example
from clearhead.views.terminal import number_text, show_step_table, vector_text

ROOT = Path(__file__).resolve().parents[2]


def drawn(example: str, width: int = 80) -> list[str]:
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    for table in worked_example(example):
        console.print(show_step_table(table))
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_selfish_is_the_picture_in_the_readme() -> None:
    shown = [line for line in drawn("selfish") if line]
    block = (ROOT / "README.md").read_text().split("```text\n")[1].split("```")[0]
    assert shown == [line.rstrip() for line in block.splitlines() if line.strip()]


GOLDEN_ACTION = """\
where 'Action' looks
Action asks with q = [2 2 2 2]   (… of vectors of 4 numbers 2 are shown)

 Word                k             v  score  score/2  softmax     softmax·v
 ──────────────────────────────────────────────────────────────────────────
 Action         [2 2…]        [2 2…]     16        8     0.03  [0.05 0.05…]
 gets     [4.54 2.84…]  [2.84 5.08…]  21.57    10.78     0.43  [1.22 2.17…]
 results  [3.58 4.91…]  [4.91 1.17…]  22.05    11.03     0.55  [2.68 0.64…]

 sum                                                     1.00  [3.95 2.86…]
"""


def test_action_at_80_columns() -> None:
    assert drawn("action")[: GOLDEN_ACTION.count("\n")] == GOLDEN_ACTION.splitlines()


@pytest.mark.parametrize("example", ["selfish", "batch", "action"])
def test_nothing_is_wider_than_80_columns(example: str) -> None:
    assert max(len(line) for line in drawn(example)) <= 80


def test_numbers() -> None:
    assert number_text(3.0) == "3"
    assert number_text(-1.5) == "−1.50"
    assert vector_text((1.0, -2.0, 3.0), 4) == "[1 −2 3]"
    assert vector_text((0.5, -0.001, 3.0), 2) == "[0.50 0.00…]"
