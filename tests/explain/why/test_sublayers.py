from __future__ import annotations

import pytest
import torch

import clearhead as ch
from clearhead.explain.why.sublayers import Capture
from tests.shared.explained_models import random_decoder
from tests.shared.tiny_models import token_ids

pytestmark = pytest.mark.usefixtures("one_thread")


def test_weights_and_values_are_those_that_watch_sees() -> None:
    loaded = random_decoder(kv_heads=2, window=3, window_layers=(False, True, False))
    assert isinstance(loaded.model, ch.Decoder)
    ids, places = token_ids(1, 9), (4, 8)
    capture = Capture(loaded.model.stack, places)
    with capture.running(), ch.watch(loaded.model, values=True) as seen, torch.no_grad():
        loaded.model(ids)
    captured = capture.captured()
    assert [one.name for one in captured.sublayers] == ["L0", "L0F", "L1", "L1F", "L2", "L2F"]
    for sublayer in captured.sublayers[::2]:
        rows = sublayer.attention
        assert rows is not None
        for number, place in enumerate(places):
            for head in range(6):
                whole = torch.zeros(9, dtype=torch.float64)
                keys = rows.keys[number]
                whole[keys.start : keys.stop] = rows.weights[number][head]
                seen_row = seen[f"{sublayer.name}H{head}"].weights(place, None).double()
                assert torch.allclose(whole, seen_row, atol=1e-6)


def test_each_sublayer_reads_what_the_ones_before_it_wrote() -> None:
    loaded = random_decoder()
    assert isinstance(loaded.model, ch.Decoder)
    capture = Capture(loaded.model.stack, [5])
    with capture.running(), torch.no_grad():
        loaded.model(token_ids(1, 7))
    found = capture.captured()
    for one, following in zip(found.sublayers, found.sublayers[1:], strict=False):
        assert torch.allclose(one.before + one.written, following.before, atol=1e-5)
    assert found.named("L1F") is found.sublayers[3] and found.named("L9") is None


def test_nothing_is_left_on_the_model() -> None:
    loaded = random_decoder()
    assert isinstance(loaded.model, ch.Decoder)
    capture = Capture(loaded.model.stack, [0])
    with pytest.raises(KeyError), capture.running():
        raise KeyError
    assert not any(module._forward_hooks for module in loaded.model.modules())
