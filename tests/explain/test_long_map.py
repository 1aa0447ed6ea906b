from __future__ import annotations

import numpy as np
import pytest

from clearhead.explain.long_map import long_map
from clearhead.explain.make_look import make_look
from tests.shared.explain_models import decoder

TEXT = "the students opened their books and their minds " * 5


def test_a_map_holds_the_largest_weight_of_each_cell() -> None:
    look = make_look(decoder(), TEXT)
    picture = long_map(look, "L1H2", size=7)
    weights = look.seen["L1H2"].weights().numpy()[:, 1:]  # the first token is left out
    assert picture.weights.shape == (7, 7)
    for row, column in ((6, 0), (3, 2), (6, 6)):
        rows, columns = picture.rows[row].tokens, picture.columns[column].tokens
        cell = weights[np.ix_(rows, [place - 1 for place in columns])]
        assert picture.weights[row, column] == pytest.approx(cell.max(), abs=6e-5)
    assert not picture.visible[0, 6] and picture.visible[6, 6]
    assert "Attention to the first token is left out." in picture.notes
    assert "the largest weight is shown" in " ".join(picture.notes)


def test_a_short_text_has_a_cell_for_each_token() -> None:
    look = make_look(decoder(), "the students opened", head="L0H1").with_aids(hide="nothing")
    picture = long_map(look)
    assert np.allclose(picture.weights, look.seen["L0H1"].weights().numpy(), atol=6e-5)
    assert picture.head == "L0H1"
