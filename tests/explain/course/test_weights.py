"""The weights of a small encoder-decoder."""

from __future__ import annotations

import pytest
import torch

import clearhead as ch
from clearhead.errors import InputError
from clearhead.explain.course import weights
from clearhead.explain.course.packed import unpacked


def test_every_parameter_is_there_once() -> None:
    loaded = ch.load("dates")
    found = weights.encoder_decoder_weights(loaded)
    numbers = torch.from_numpy(unpacked(found["numbers"]).copy())
    assert len(numbers) == found["parameters"]
    assert found["parameters"] == sum(one.numel() for one in loaded.model.parameters())
    own, at = dict(loaded.model.named_parameters()), 0
    for name, shape in found["shapes"].items():
        size = torch.Size(shape).numel()
        if name in own:
            assert torch.equal(numbers[at : at + size].view(shape), own[name])
        at += size


def test_a_large_model_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "MOST", 11)
    with pytest.raises(InputError, match="at most 11 parameters; this has 121,409"):
        weights.encoder_decoder_weights(ch.load("dates"))
