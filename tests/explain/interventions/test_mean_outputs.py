from __future__ import annotations

import pytest
import torch

import clearhead as ch
from clearhead.explain.interventions.mean_outputs import mean_outputs
from clearhead.explain.interventions.places import places_of


def test_an_encoder_decoder_writes_for_its_mean() -> None:
    loaded = ch.load("dates")
    places = places_of(loaded, ["C0H1", "L0F"])
    heads, hidden = mean_outputs(loaded, places, ["3rd of March 2021"])
    assert heads.shape == (loaded.config.heads * loaded.config.head_width,)
    assert hidden.shape == (loaded.config.model,) and torch.isfinite(hidden).all()
    with pytest.raises(ch.ClearheadError, match="needs texts that it is made for"):
        mean_outputs(loaded, places, None)
