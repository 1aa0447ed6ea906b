from __future__ import annotations

import pytest
import torch

import clearhead as ch
from clearhead.explain.interventions.mean_outputs import MeanOutput, mean_outputs
from clearhead.explain.interventions.places import places_of


def test_an_encoder_decoder_writes_for_its_mean() -> None:
    loaded = ch.load("dates")
    places = places_of(loaded, ["C0H1", "L0F"])
    heads, hidden = mean_outputs(loaded, places, ["3rd of March 2021"])
    assert heads.shape == (loaded.config.heads * loaded.config.head_width,)
    assert hidden.shape == (loaded.config.model,) and torch.isfinite(hidden).all()
    with pytest.raises(ch.ClearheadError, match="needs texts that it is made for"):
        mean_outputs(loaded, places, None)


def test_padding_does_not_count() -> None:
    mean = MeanOutput()
    mean.real = torch.tensor([[True, True, False], [True, False, False]])
    rows = torch.arange(18.0).view(3, 3, 2)  # the third row was added to the batch
    mean.add(rows)
    assert mean.count == 3
    assert torch.equal(mean.mean(), torch.stack([rows[0, 0], rows[0, 1], rows[1, 0]]).mean(0))
    packed = MeanOutput()
    packed.real = mean.real
    packed.add(torch.stack([rows[0, 0], rows[0, 1], rows[1, 0], rows[2, 2]])[None])
    assert torch.equal(packed.mean(), mean.mean())
