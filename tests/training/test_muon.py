"""Muon: every direction of a matrix becomes equally strong."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard, distribute_tensor

from clearhead.training.muon import Muon, orthogonal


@pytest.mark.parametrize("shape", [(3, 11, 11), (2, 7, 13), (2, 13, 7)])
def test_about_orthogonal(shape: tuple[int, int, int]) -> None:
    torch.manual_seed(3)
    matrices = torch.randn(shape)
    made = orthogonal(matrices)
    strengths = torch.linalg.svdvals(made)
    assert 0.5 < float(strengths.min()) <= float(strengths.max()) < 1.3
    u, _, v = torch.linalg.svd(matrices, full_matrices=False)
    ideal = u @ v
    along = (made * ideal).sum((1, 2)) / (made.norm(dim=(1, 2)) * ideal.norm(dim=(1, 2)))
    assert float(along.min()) > 0.95


def test_one_step_by_hand() -> None:
    """A gradient with one direction moves the weights along it, scaled by √(rows/columns)."""
    weight = nn.Parameter(torch.zeros(8, 2))
    weight.grad = torch.zeros(8, 2)
    weight.grad[0, 0] = 5.0
    Muon([weight], learning_rate=0.1).step()
    moved = weight.detach()
    assert 0.1 * 2 * 0.6 < -float(moved[0, 0]) < 0.1 * 2 * 1.3
    assert not moved[1:].any() and not moved[:, 1].any()


def test_bfloat16_directs_about_alike_and_leaves_the_weights_in_float32() -> None:
    torch.manual_seed(5)
    gradient, moved = torch.randn(31, 17), []
    for dtype in (torch.float32, torch.bfloat16):
        weight = nn.Parameter(torch.zeros(31, 17))
        weight.grad = gradient.clone()
        Muon([weight], learning_rate=1.0, dtype=dtype).step()
        moved.append(weight.detach())
    assert moved[1].dtype is torch.float32
    difference = float((moved[0] - moved[1]).norm() / moved[0].norm())
    assert 0 < difference < 0.03


def test_matrices_of_one_shape_do_not_meet() -> None:
    torch.manual_seed(3)
    gradients = torch.randn(2, 5, 7)

    def moved(numbers: list[int]) -> list[torch.Tensor]:
        weights = [nn.Parameter(torch.ones(5, 7)) for _ in numbers]
        for weight, number in zip(weights, numbers, strict=True):
            weight.grad = gradients[number].clone()
        Muon(weights, learning_rate=0.1, weight_decay=0.5).step()
        return [weight.detach() for weight in weights]

    together = moved([0, 1])
    torch.testing.assert_close(together[1], moved([1])[0])
    assert not torch.allclose(together[0], together[1])


def test_shards_move_as_the_whole_does(tmp_path: Path) -> None:
    """A matrix cut over processes (here: one) moves by the same numbers."""
    torch.manual_seed(3)
    gradient = torch.randn(6, 5)
    plain = nn.Parameter(torch.ones(6, 5))
    plain.grad = gradient.clone()
    distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/meeting", rank=0, world_size=1
    )
    try:
        mesh = init_device_mesh("cpu", (1,))
        cut = nn.Parameter(distribute_tensor(torch.ones(6, 5), mesh, [Shard(0)]))
        cut.grad = distribute_tensor(gradient, mesh, [Shard(0)])
        for parameter in (plain, cut):
            Muon([parameter], learning_rate=0.1).step()
        assert isinstance(cut.data, DTensor)
        torch.testing.assert_close(cut.data.full_tensor(), plain.data)
    finally:
        distributed.destroy_process_group()
