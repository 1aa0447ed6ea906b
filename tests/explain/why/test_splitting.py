from __future__ import annotations

import pytest
import torch

import clearhead as ch
from clearhead.explain.why.direction import Direction
from clearhead.explain.why.splitting import split_stream
from clearhead.explain.why.sublayers import Capture
from tests.shared.explained_models import random_decoder
from tests.shared.tiny_models import token_ids

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("place", ["before", "after", "around"])
@pytest.mark.parametrize("until", [0, 1, 4])
def test_any_direction_of_the_stream_at_any_depth(place: str, until: int) -> None:
    """What a random vector reads of the stream is the sum of what it reads of the parts."""
    loaded = random_decoder(norm_place=place, norm="layer")
    assert isinstance(loaded.model, ch.Decoder)
    ids = token_ids(1, 9)
    capture = Capture(loaded.model.stack, [3, 8])
    with capture.running(), torch.no_grad():
        loaded.model(ids)
    captured = capture.captured()
    direction = Direction(torch.randn(42, dtype=torch.float64))
    for row, position in enumerate((3, 8)):
        found = split_stream(
            captured, row, captured.sublayers[:until], direction, int(ids[0, position])
        )
        wanted = float(direction.of(captured.sublayers[until].before[row]))
        assert found.total == pytest.approx(wanted, abs=1e-4)
