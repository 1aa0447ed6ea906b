from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from clearhead.errors import InputError
from clearhead.explain.pictures import Aids
from clearhead.views.page.data import page_of_look
from clearhead.views.page.groups import groups_of
from tests.shared.made_looks import GROUP, KV_HEADS, made_look, translated_look
from tests.shared.page_blocks import dense


@pytest.mark.parametrize("measure", ["weight", "weight·‖v‖"])
def test_long_texts_are_cut_into_runs_with_the_same_numbers(
    monkeypatch: pytest.MonkeyPatch, measure: Any
) -> None:
    look = made_look(aids=Aids(measure=measure))
    whole = page_of_look(look)
    monkeypatch.setattr("clearhead.views.page.groups.TILE", 3 * KV_HEADS * GROUP * 14)
    runs = page_of_look(look)  # three rows at a time, and no column that none of them sees
    for name, block in whole.blocks.by_name.items():
        if name.endswith("-sum"):  # not rounded: other tiles, other last bits
            found = dense(runs.blocks.by_name[name], 14) - dense(block, 14)
            assert np.abs(found).max() < 1e-2
        else:
            assert runs.blocks.by_name[name] == block, name
    assert runs.meta == whole.meta


@pytest.mark.parametrize("pool", ["max", "mean", "sum"])
def test_all_heads_together_have_the_numbers_of_their_picture(pool: Any) -> None:
    look = made_look(aids=Aids(pool=pool))
    data = page_of_look(look)
    (group,) = data.meta["groups"]
    assert group["name"] == f"all {3 * KV_HEADS * GROUP} heads"
    rows = dense(
        data.blocks.by_name[group["pools"]["max" if pool == "max" else "sum"]], len(look.columns)
    )
    by = group["count"] if pool == "mean" else 1
    assert np.abs(rows / by - look.head("all").weights * 10_000).max() <= 0.51
    layer = data.meta["layers"][1]
    rows = dense(data.blocks.by_name[layer["pools"]["max" if pool == "max" else "sum"]], 14)
    by = len(layer["heads"]) if pool == "mean" else 1
    assert np.abs(rows / by - look.head("L1").weights * 10_000).max() <= 0.51


def test_layers_are_grouped_by_their_axes_the_shown_ones_first() -> None:
    groups = groups_of(translated_look())
    assert [group.letter for group in groups] == ["C", "E", "L"]
    assert groups[0].heads == [f"C0H{head}" for head in range(6)]
    assert groups[2].layers[0].band == {"low": [0] * 5, "high": [1, 2, 3, 4, 5]}


def test_a_text_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clearhead.views.page.groups.LONGEST", 13)
    with pytest.raises(InputError, match="a page holds at most 13 words; this text has 14"):
        groups_of(made_look())
