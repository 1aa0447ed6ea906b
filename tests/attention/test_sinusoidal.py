from __future__ import annotations

import math

import pytest
import torch
from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding

from clearhead.attention.sinusoidal import sinusoidal_positions
from clearhead.errors import InputError


def test_the_papers_numbers() -> None:
    waves = sinusoidal_positions(3, 4)
    assert waves.shape == (3, 4)
    for position in range(3):
        slow = position / 100  # 10,000^(2/4)
        wanted = [math.sin(position), math.cos(position), math.sin(slow), math.cos(slow)]
        torch.testing.assert_close(waves[position], torch.tensor(wanted))


def test_halves_hold_the_same_waves_in_another_order() -> None:
    interleaved = sinusoidal_positions(7, 6)
    halves = sinusoidal_positions(7, 6, layout="halves")
    assert halves.equal(torch.cat([interleaved[:, 0::2], interleaved[:, 1::2]], dim=1))


def test_marian_in_transformers() -> None:
    theirs = MarianSinusoidalPositionalEmbedding(97, 22)
    assert sinusoidal_positions(97, 22, layout="halves").equal(theirs.create_weight())


def test_positions_of_each_row_and_another_base() -> None:
    positions = torch.tensor([[0, 1, 2], [5, 6, 90]])
    waves = sinusoidal_positions(positions, 10, base=77.0)
    assert waves.shape == (2, 3, 10)
    every = sinusoidal_positions(91, 10, base=77.0)
    assert waves.equal(every[positions])
    assert not waves[1].equal(sinusoidal_positions(positions, 10)[1])


def test_far_positions_stay_exact() -> None:
    far = sinusoidal_positions(torch.tensor([1_000_003]), 4)[0]
    assert far[0].item() == pytest.approx(math.sin(1_000_003), abs=1e-6)


def test_no_positions() -> None:
    assert sinusoidal_positions(0, 4).shape == (0, 4)


@pytest.mark.parametrize("width", [0, 1, 7, -2])
def test_a_width_without_pairs(width: int) -> None:
    with pytest.raises(InputError, match=rf"in sin/cos pairs; width must be even; got {width}"):
        sinusoidal_positions(3, width)
