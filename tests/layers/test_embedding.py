from __future__ import annotations

import math

import pytest
import torch

from clearhead.errors import InputError
from clearhead.layers.embedding import Embedding, SinusoidalPositions
from clearhead.layers.positions import LearnedPositions


def test_tokens_scale_positions_and_segments_by_hand() -> None:
    layer = Embedding(3, 2, positions=LearnedPositions(5, 2), segments=2, scale=10.0).eval()
    assert isinstance(layer.positions, LearnedPositions)
    assert layer.segments is not None
    with torch.no_grad():
        layer.tokens.weight.copy_(torch.tensor([[0.0, 0.0], [1.0, 2.0], [3.0, 4.0]]))
        layer.positions.weight.copy_(torch.arange(5.0)[:, None] * torch.tensor([0.1, 0.0]))
        layer.segments.weight.copy_(torch.tensor([[0.0, 0.5], [0.0, 0.25]]))
    ids, standing = torch.tensor([[2, 1]]), torch.tensor([[3, 4]])
    got = layer(ids, standing, torch.tensor([[0, 1]]))
    torch.testing.assert_close(got, torch.tensor([[[30.3, 40.5], [10.4, 20.25]]]))
    without = layer(ids, standing)  # everything is segment 0 unless said
    torch.testing.assert_close(without, torch.tensor([[[30.3, 40.5], [10.4, 20.5]]]))


def test_sinusoidal_positions_are_the_papers() -> None:
    waves = SinusoidalPositions(4)(torch.tensor([[0, 3]]))
    wanted = [math.sin(3), math.cos(3), math.sin(3 / 100), math.cos(3 / 100)]
    assert waves[0, 0].tolist() == [0.0, 1.0, 0.0, 1.0]
    assert waves[0, 1].tolist() == pytest.approx(wanted)
    halves = SinusoidalPositions(4, halves=True)(torch.tensor([[0, 3]]))
    assert halves[0, 1].tolist() == pytest.approx([wanted[0], wanted[2], wanted[1], wanted[3]])
    assert not list(SinusoidalPositions(4).parameters())


def test_norm_comes_last() -> None:
    layer = Embedding(
        7, 6, positions=SinusoidalPositions(6), scale=3.0, norm=lambda: torch.nn.LayerNorm(6)
    )
    states = layer(torch.randint(7, (2, 5)), torch.arange(5)[None])
    torch.testing.assert_close(states.mean(-1), torch.zeros(2, 5), atol=1e-6, rtol=0)


def test_dtype_follows_the_weights() -> None:
    layer = Embedding(7, 6, positions=SinusoidalPositions(6)).to(torch.bfloat16)
    assert layer(torch.randint(7, (2, 5)), torch.arange(5)[None]).dtype == torch.bfloat16


def test_each_row_may_stand_elsewhere() -> None:
    layer = Embedding(7, 6, positions=SinusoidalPositions(6))
    ids = torch.randint(7, (2, 5))
    standing = torch.tensor([[0], [9]]) + torch.arange(5)
    both = layer(ids, standing)
    torch.testing.assert_close(both[1:], layer(ids[1:], torch.arange(9, 14)[None]))


def test_dropout_only_in_training() -> None:
    layer = Embedding(7, 60, dropout=0.5)
    ids, standing = torch.randint(7, (2, 5)), torch.arange(5)[None]
    assert (layer(ids, standing) == 0).float().mean() > 0.3
    assert not (layer.eval()(ids, standing) == 0).any()


def test_ids_outside_the_vocabulary() -> None:
    layer = Embedding(7, 6)
    for strange in (7, -1):
        with pytest.raises(InputError, match=r"must be 0 … 6, the vocabulary; got"):
            layer(torch.tensor([[2, strange]]), torch.arange(2)[None])


def test_segments_where_there_are_none() -> None:
    with pytest.raises(InputError, match="this model has no segments"):
        Embedding(7, 6)(torch.tensor([[2]]), torch.tensor([[0]]), torch.tensor([[0]]))
