from __future__ import annotations

import clearhead as ch
from clearhead.views.svg.predictions import draw_lens, draw_prediction, draw_predictions
from tests.shared.svg_elements import elements


def test_bars_and_cells() -> None:
    look = ch.look("dates", "3rd of March 2021")
    drawn = draw_prediction(look.predictions("2021", top=3).insight)
    assert len(elements(drawn, "rect")) == 1 + 2 * 4  # the ground; two for each bar
    every = look.predictions(top=2).insight
    came = sum(one.came is not None for one in every.all)
    assert len(elements(draw_predictions(every), "rect")) == 1 + 2 * came
    lens = look.lens().insight
    assert len(elements(draw_lens(lens), "rect")) == 1 + 2 * len(lens.positions)
