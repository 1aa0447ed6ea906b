from __future__ import annotations

import numpy as np
import pytest

from clearhead.explain.look import Look
from clearhead.trace.seen import Seen
from clearhead.views.svg.gallery import draw_gallery
from clearhead.views.svg.parts import (
    ACCENT,
)
from tests.shared.made_looks import made_look, passage_of, record_of
from tests.shared.svg_elements import elements, texts


def test_every_layer_and_head_has_its_name() -> None:
    drawn = draw_gallery(made_look().gallery())
    assert {"All 18 heads", "L0", "L2", "H0", "H5"} <= set(texts(drawn))
    assert len(elements(drawn, "image")) == 1


def test_the_five_most_salient_heads_have_a_frame() -> None:
    gallery = made_look().gallery()
    drawn = draw_gallery(gallery)
    frames = [box for box in elements(drawn, "rect") if box.get("stroke") == ACCENT]
    assert len(frames) == 5
    (image,) = elements(drawn, "image")
    best = np.unravel_index(np.argmax(gallery.salience), (3, 6))
    size = [float(image.get(name) or 0) for name in ("height", "width")]
    corner = [float(image.get(name) or 0) for name in "yx"]
    wanted = [at + size[axis] / (3, 6)[axis] * best[axis] - 1.5 for axis, at in enumerate(corner)]
    places = [[float(frame.get(name) or 0) for name in "yx"] for frame in frames]
    assert any(place == pytest.approx(wanted, abs=0.1) for place in places)


def test_maps_with_more_columns_than_rows() -> None:
    record = record_of("C0", 3, 7, causal=False, seed=5)
    look = Look(Seen([record], passage_of("a b c"), source=passage_of("t u v w x y z")))
    drawn = draw_gallery(look.gallery())
    assert len(elements(drawn, "image")) == 1
