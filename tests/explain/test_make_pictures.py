from __future__ import annotations

import numpy as np
import pytest

from clearhead.explain import make_pictures
from clearhead.explain.layer_group import LayerGroup
from clearhead.explain.make_look import make_look
from clearhead.explain.make_pictures import head_picture, small_maps, word_picture
from clearhead.explain.pictures import Aids
from clearhead.trace.head_view import HeadView
from tests.shared.explain_models import decoder

TEXT = "the naïve students opened their books and their minds"


@pytest.fixture(scope="module")
def views() -> list[HeadView]:
    seen = make_look(decoder(), TEXT).seen
    return [seen["L0"], seen["L1"]]


@pytest.fixture(scope="module")
def group() -> LayerGroup:
    return LayerGroup.of(make_look(decoder(), TEXT).seen, "L", 0, True, None)


def test_heads_of_several_layers_are_pooled(views: list[HeadView], group: LayerGroup) -> None:
    single = [
        head_picture([view[head]], group, Aids(), name="one").weights
        for view in views
        for head in range(4)
    ]
    most = head_picture(views, group, Aids(), name="all 8 heads")
    assert most.head == "max of all 8 heads"
    assert np.array_equal(most.weights, np.stack(single).max(axis=0))
    mean = head_picture(views, group, Aids(pool="mean"), name="all 8 heads")
    assert np.allclose(mean.weights, np.stack(single).mean(axis=0), atol=1e-4)
    assert head_picture([views[1][2]], group, Aids(), name="one").head == "L1H2"


def test_a_words_strengths_are_its_row(views: list[HeadView], group: LayerGroup) -> None:
    whole = head_picture(views, group, Aids(), name="all")
    word = word_picture(views, group, 4, Aids(), name="all", warnings=("Beware.",))
    assert np.array_equal(word.strengths, whole.weights[4])
    assert word.head is None and word.mark.text == "their" and "Beware." in word.notes
    weights = [source.weight for source in word.sources]
    assert weights == sorted(weights, reverse=True)
    assert group.columns[0] not in [source.mark for source in word.sources]  # hidden


def test_small_maps_keep_the_largest_weight(
    views: list[HeadView], group: LayerGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    maps = small_maps(views, group, Aids(), 3)
    assert maps.shape == (2, 4, 3, 3)
    shown = head_picture([views[1][2]], group, Aids(), name="").weights.copy()
    shown[:, 0] = 0
    assert float(maps[1, 2].max()) == pytest.approx(float(shown.max()), abs=1e-4)
    monkeypatch.setattr(make_pictures, "SPELLED", 2)  # as in a long text: tokens, block by block
    tokens = small_maps(views, group, Aids(), 3)
    assert float(tokens[1, 2].max()) == pytest.approx(float(views[1][2].weights()[:, 1:].max()))


def test_layers_with_fewer_heads_get_empty_maps(views: list[HeadView], group: LayerGroup) -> None:
    maps = small_maps([views[0], views[1][:3]], group, Aids(), 5)
    assert maps.shape == (2, 4, 5, 5)
    assert maps[0, 3].any() and not maps[1, 3].any()
