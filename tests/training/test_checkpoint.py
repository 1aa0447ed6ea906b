"""Checkpoints: written whole, read back, averaged."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from clearhead.errors import CheckpointError
from clearhead.training.checkpoint import Checkpoint, Checkpoints, averaged


def checkpoint(step: int, value: float) -> Checkpoint:
    weights, state = {"a.weight": torch.full((3, 2), value)}, {"a.weight/step": torch.tensor(5.0)}
    return Checkpoint(step, weights, state, {"step": step, "best": None})


def test_there_and_back(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path / "training")
    assert checkpoints.steps() == []
    checkpoints.write(checkpoint(7, 0.5))
    read = checkpoints.read(7)
    assert (read.step, read.facts) == (7, {"step": 7, "best": None})
    assert torch.equal(read.weights["a.weight"], torch.full((3, 2), 0.5))
    assert torch.equal(read.optimiser["a.weight/step"], torch.tensor(5.0))


def test_only_some_are_kept(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    for step in (3, 11, 5):
        checkpoints.write(checkpoint(step, step))
    (tmp_path / "step-5.safetensors").write_text("not ours")
    assert checkpoints.steps() == [3, 5, 11]
    checkpoints.keep([5, 11, 13])
    assert checkpoints.steps() == [5, 11]


def test_the_mean_by_hand(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    for step, value in ((1, 1.0), (2, 2.0), (3, 6.0)):
        checkpoints.write(checkpoint(step, value))
    assert torch.equal(averaged(checkpoints, [1, 2, 3])["a.weight"], torch.full((3, 2), 3.0))


def test_a_file_of_something_else(tmp_path: Path) -> None:
    save_file({"a": torch.zeros(2)}, tmp_path / "step-00000002.safetensors")
    with pytest.raises(CheckpointError, match="is not the checkpoint of a training run"):
        Checkpoints(tmp_path).read(2)
