from __future__ import annotations

import numpy as np

from clearhead.views.page.blocks import Blocks
from clearhead.views.page.vectors import add_vectors
from tests.shared.made_looks import GROUP, KV_HEADS, made_look
from tests.shared.page_blocks import unpacked


def test_vectors_come_for_the_chosen_head_first_and_stay_in_their_budget() -> None:
    look = made_look(head="L2H4")
    views = [look.seen[f"L{n}"] for n in range(3)]
    all_of_them = add_vectors(Blocks(), views, "L2H4")
    assert len(all_of_them) == 3 * KV_HEADS * GROUP
    few = Blocks()
    found = add_vectors(few, views, "L2H4", budget=4000)
    assert list(found) == ["L2H3", "L2H4", "L2H5"]  # its group shares k and v
    assert few.size <= 4000
    numbers = np.frombuffer(unpacked(few.by_name["vectors-L2-1"]), "<f4")
    record = look.seen["L2"].record
    queries = record.query[0, 3:6].numpy().ravel()
    assert (numbers[: queries.size] == queries).all()


def test_without_a_budget_there_are_no_vectors() -> None:
    blocks = Blocks()
    assert add_vectors(blocks, [made_look(layers=1).seen["L0"]], "L0H0", budget=0) == {}
    assert blocks.by_name == {}
