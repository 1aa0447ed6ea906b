"""Checkpoints: written whole, read back, averaged; whatever is damaged is noticed."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from clearhead.errors import CheckpointError
from clearhead.training.run_folder.checkpoint import (
    CHECKSUM,
    FACTS,
    Checkpoint,
    Checkpoints,
    averaged,
)
from clearhead.training.run_folder.checksum import DamagedError, checksum_of_tensors
from clearhead.training.run_folder.log import EMPTY
from clearhead.training.run_folder.progress import Facts, Progress
from clearhead.training.schedule import Pace

PROGRESS = {
    "pace": Pace(13, 2, 0.25),
    "best": (2.5, 3),
    "milestones": (3,),
    "first": 3.0,
    "recent": (2.0,),
}


def checkpoint(step: int, value: float) -> Checkpoint:
    weights, state = {"a.weight": torch.full((3, 2), value)}, {"a.weight/step": torch.tensor(5.0)}
    return Checkpoint(weights, state, Facts(Progress(step), EMPTY, {"steps": 13}))


def test_there_and_back(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path / "training")
    assert checkpoints.steps() == []
    facts = Facts(Progress(7, **PROGRESS), EMPTY, {"steps": 13})  # type: ignore[arg-type]
    written = checkpoint(7, 0.5)
    checkpoints.write(Checkpoint(written.weights, written.optimiser, facts))
    read = checkpoints.read(7)
    assert (read.step, read.facts) == (7, facts)
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
    assert checkpoints.set_aside(11).name == "step-00000011.safetensors.damaged"
    assert checkpoints.steps() == [5]


def test_the_mean_by_hand(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    for step, value in ((1, 1.0), (2, 2.0), (3, 6.0)):
        checkpoints.write(checkpoint(step, value))
    assert torch.equal(averaged(checkpoints, [1, 2, 3])["a.weight"], torch.full((3, 2), 3.0))


def test_every_flipped_bit_is_noticed(tmp_path: Path) -> None:
    """Every byte of a checkpoint with one bit of it flipped."""
    checkpoints, generator = Checkpoints(tmp_path), random.Random(11)
    path = checkpoints.write(checkpoint(7, 0.5))
    sound = path.read_bytes()
    unnoticed = []
    for place in range(len(sound)):
        broken = bytearray(sound)
        broken[place] ^= 1 << generator.randrange(8)
        path.write_bytes(broken)
        try:
            read = checkpoints.read(7)
        except CheckpointError:
            continue
        same = torch.equal(read.weights["a.weight"], torch.full((3, 2), 0.5))
        unnoticed.append((place, same, read.facts == checkpoint(7, 0.5).facts))
    # The note "format": "pt" is for other programs: no part of what is read.
    assert all(same and facts for _, same, facts in unnoticed)
    assert len(unnoticed) < 16


def test_a_damaged_weight_is_told(tmp_path: Path) -> None:
    path = Checkpoints(tmp_path).write(checkpoint(2, 0.5))
    broken = bytearray(path.read_bytes())
    broken[-1] ^= 1
    path.write_bytes(broken)
    with pytest.raises(DamagedError, match="is damaged: its checksum is not that of its content"):
        Checkpoints(tmp_path).read(2)


def test_a_file_of_something_else(tmp_path: Path) -> None:
    save_file({"a": torch.zeros(2)}, tmp_path / "step-00000002.safetensors")
    with pytest.raises(CheckpointError, match="is not the checkpoint of a training run"):
        Checkpoints(tmp_path).read(2)
    with pytest.raises(CheckpointError, match="cannot be read"):
        Checkpoints(tmp_path).read(3)


def forge(path: Path, facts: object, **more: torch.Tensor) -> None:
    """A checkpoint with a right checksum, and with other facts and tensors."""
    text = facts if isinstance(facts, str) else json.dumps(facts)
    tensors = load_file(path) | more
    save_file(tensors, path, {FACTS: text, CHECKSUM: checksum_of_tensors(tensors, text)})


def test_facts_are_not_believed(tmp_path: Path) -> None:
    """Checksums are right; what they seal is not."""
    path = Checkpoints(tmp_path).write(checkpoint(2, 0.5))
    good = json.loads(json.dumps({"progress": vars(Progress(2)), "log": vars(EMPTY),
                                  "settings": {}}))  # fmt: skip
    for facts, message in (
        ("{" * 100_000, "not the checkpoint of a training run"),
        ("[1, 2]", "must be an object"),
        ({}, "lacks log, progress, settings"),
        (good | {"colour": 1}, "knows no colour"),
        (good | {"progress": good["progress"] | {"step": 3}}, "is the checkpoint of step 3"),
        (good | {"progress": good["progress"] | {"step": "2"}}, "step must be a whole number"),
        (good | {"progress": good["progress"] | {"best": [1.0]}}, "best must have 2 entries"),
        (good | {"progress": good["progress"] | {"best": [1.0, 5]}}, "remembers later ones"),
        (good | {"progress": good["progress"] | {"stale": -1}}, "counts from 0"),
        (good | {"log": {"bytes": -1, "sha256": ""}}, "cannot have -1 bytes"),
    ):
        forge(path, facts)
        with pytest.raises(CheckpointError, match=message):
            Checkpoints(tmp_path).read(2)
    forge(path, good, colour=torch.zeros(1))
    with pytest.raises(CheckpointError, match="holds 'colour', which no checkpoint has"):
        Checkpoints(tmp_path).read(2)
