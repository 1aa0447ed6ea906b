from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch

from clearhead.explain.long_map import long_map
from clearhead.explain.make_look import make_look
from clearhead.views.formats import FORMATS
from tests.shared.explain_models import decoder

TEXT = "the students opened their books and their minds " * 5


def test_a_map_holds_the_largest_weight_of_each_cell() -> None:
    look = make_look(decoder(), TEXT)
    picture = long_map(look, "L1H2", size=7)
    weights = look.seen["L1H2"].weights().numpy()
    mass = weights[:, 0].copy()
    weights[:, 0] = 0  # the first token is hidden
    assert picture.weights.shape == (7, 7)
    for row, column in ((6, 0), (3, 2), (6, 6)):
        rows, columns = picture.rows[row].tokens, picture.columns[column].tokens
        cell = weights[np.ix_(rows, columns)]
        assert picture.weights[row, column] == pytest.approx(cell.max(), abs=6e-5)
    assert not picture.visible[0, 6] and picture.visible[6, 6]
    wanted = [mass[list(mark.tokens)].mean() for mark in picture.rows]
    assert np.allclose(picture.hidden_mass, wanted, atol=6e-5) and picture.hidden == ()
    assert "Hidden, with its mass shown: attention to the first token." in picture.notes
    assert picture.rows[1].text in " ".join(TEXT.split()) and " " in picture.rows[1].text
    assert "the largest weight is shown" in " ".join(picture.notes)


def test_every_renderer_draws_a_map() -> None:
    picture = long_map(make_look(decoder(), TEXT), "L1H2", size=7)
    for name, render in FORMATS.items():
        assert len(render(picture)) > 200, name
    told = json.loads(FORMATS["json"](picture))
    assert "zoom" not in told and np.shape(told["weights"]) == (7, 7)


def test_a_short_text_has_a_cell_for_each_token() -> None:
    look = make_look(decoder(), "the students opened", head="L0H1").with_aids(hide="nothing")
    picture = long_map(look)
    assert np.allclose(picture.weights, look.seen["L0H1"].weights().numpy(), atol=6e-5)
    assert picture.head == "L0H1"


@pytest.mark.parametrize("pool", ["max", "mean", "sum"])
@pytest.mark.parametrize("measure", ["weight", "weight·‖v‖"])
def test_every_pool_and_measure_of_a_layer(pool: Any, measure: Any) -> None:
    look = make_look(decoder(), TEXT).with_aids(pool=pool, measure=measure)
    picture = long_map(look, "L1", size=7)
    view = look.seen["L1"]
    weights = view.weights().double()
    if measure != "weight":
        lengths = view.record.value[0].double().norm(dim=-1)  # type: ignore[index]
        weights = weights * lengths.repeat_interleave(len(weights) // len(lengths), 0)[:, None]
        weights /= weights.sum(dim=2, keepdim=True)
    weights[:, :, 0] = 0
    reduce: Any = {"max": torch.amax, "mean": torch.mean, "sum": torch.sum}[pool]
    for row, column in ((6, 0), (3, 2), (6, 6)):
        cell = weights[:, list(picture.rows[row].tokens)]
        wanted = reduce(cell[:, :, list(picture.columns[column].tokens)], dim=(0, 1, 2))
        assert picture.weights[row, column] == pytest.approx(float(wanted), abs=6e-5)
    assert picture.head == f"{pool} of L1" and picture.pooled == pool
