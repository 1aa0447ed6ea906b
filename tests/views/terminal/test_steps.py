from __future__ import annotations

import re
from dataclasses import replace

from rich.cells import cell_len

from clearhead.explain.worked_examples import worked_example
from clearhead.views.terminal.parts import Drawn
from clearhead.views.terminal.render import plain_text
from clearhead.views.terminal.steps import step_parts
from tests.shared.golden_pictures import steps

GOLDEN_ACTION = """\
where 'Action' looks
q of “Action” = [2 2 2 2]

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


def test_fewer_entries_and_columns_where_the_terminal_is_narrow() -> None:
    wide, narrow = (Drawn(lambda w: step_parts(steps(), w)).plain(width) for width in (120, 60))
    assert "softmax·v" in wide and "[0.50 −1.25 0.00]" in wide
    assert max(map(cell_len, narrow.splitlines()[:4])) <= 60 and "softmax" in narrow


def test_many_masked_words_share_a_line_for_each_reason() -> None:
    table = steps()
    rows = (*table.rows[:3], *[table.rows[3]] * 5, replace(table.rows[3], masked="window"))
    text = Drawn(lambda width: step_parts(replace(table, rows=rows), width)).plain(120)
    assert re.search(r"5 words .*−∞ future", text) and re.search(r"1 words .*−∞ window", text)
