"""What a run saves: a damaged checkpoint is replaced by the one before it, and that is told."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
import torch

import clearhead as ch
from clearhead.errors import CheckpointError
from clearhead.training.events import Event, Finished, Started, Stepped, Validated, Warned
from clearhead.training.loop import train_task
from clearhead.training.run_folder import RunFolder
from tests.training.conftest import Make

pytestmark = pytest.mark.usefixtures("unchecked")


def losses(events: list[Event]) -> list[float]:
    return [event.loss for event in events if isinstance(event, Stepped | Validated)]


def damage(path: Path) -> None:
    """Flip a bit in the last number of a file."""
    data = bytearray(path.read_bytes())
    data[-2] ^= 16
    path.write_bytes(data)


@pytest.fixture
def cut(make: Make, tmp_path: Path) -> tuple[RunFolder, list[float]]:
    """A run that was abandoned after step 9 of 12, and the losses of an undisturbed one."""
    whole = losses(list(train_task(*make(), folder=RunFolder(tmp_path / "whole"))))
    for event in train_task(*make(), folder=RunFolder(tmp_path / "cut")):
        if isinstance(event, Stepped) and event.step == 9:
            break
    return RunFolder(tmp_path / "cut"), whole


def test_a_damaged_checkpoint_falls_back(make: Make, cut: tuple[RunFolder, list[float]]) -> None:
    folder, whole = cut
    assert folder.checkpoints.steps()[-2:] == [4, 8]
    damage(folder.checkpoints.path(8))
    events = list(train_task(*make(), folder=folder))
    warned, started = events[:2]
    assert isinstance(warned, Warned) and "step-00000008.safetensors is damaged" in warned.message
    assert "continues from the checkpoint before it" in warned.message
    assert warned.hint is not None and "fetch" not in warned.hint
    assert isinstance(started, Started) and started.step == 4
    assert losses(events) == whole[5:]
    assert (folder.inside / "step-00000008.safetensors.damaged").exists()
    assert isinstance(events[-1], Finished)


def test_every_checkpoint_is_damaged(make: Make, cut: tuple[RunFolder, list[float]]) -> None:
    folder, _ = cut
    for step in folder.checkpoints.steps():
        damage(folder.checkpoints.path(step))
    with pytest.raises(CheckpointError, match=r"no checkpoint in .* is whole") as error:
        list(train_task(*make(), folder=folder))
    assert error.value.hint is not None and "--from" in error.value.hint


def test_a_damaged_checkpoint_at_the_end_is_left_out(make: Make, tmp_path: Path) -> None:
    """Of those that would be averaged, one is damaged: the mean is left out, and that is told."""
    folder = RunFolder(tmp_path / "run")
    events = []
    for event in train_task(*make(), folder=folder):
        events.append(event)
        if isinstance(event, Validated) and event.step == 12:
            damage(folder.checkpoints.path(4))
    told = [event.message for event in events if isinstance(event, Warned)]
    assert len(told) == 1 and "step-00000004.safetensors is damaged" in told[0]
    assert "mean of steps 4 … 12 is left out" in told[0]


def test_a_checkpoint_of_another_model(make: Make, cut: tuple[RunFolder, list[float]]) -> None:
    folder, _ = cut
    held = folder.checkpoints.read(8)
    name = next(iter(held.weights))
    for other in (held.weights[name][:-1], held.weights[name].double()):
        held.weights[name] = other.contiguous()
        folder.checkpoints.write(held)
        with pytest.raises(CheckpointError, match="of another model: 1 parameters differ"):
            list(train_task(*make(), folder=folder))
    del held.weights[name]
    folder.checkpoints.write(held)
    with pytest.raises(CheckpointError, match="of another model: 1 parameters differ"):
        list(train_task(*make(), folder=folder))


def test_optimiser_state_of_another_shape(make: Make, cut: tuple[RunFolder, list[float]]) -> None:
    folder, _ = cut
    held = folder.checkpoints.read(8)
    name = next(name for name in held.optimiser if name.endswith("/momentum"))
    held.optimiser[name] = torch.zeros(3)
    folder.checkpoints.write(held)
    with pytest.raises(CheckpointError, match="has the shape"):
        list(train_task(*make(), folder=folder))
    held.optimiser["colour/momentum"] = held.optimiser.pop(name)
    folder.checkpoints.write(held)
    with pytest.raises(CheckpointError, match="1 entries are missing or unknown"):
        list(train_task(*make(), folder=folder))


def test_a_file_that_cannot_grow(make: Make, tmp_path: Path) -> None:
    """A real fault while writing: the checkpoint before it stays whole, nothing half is left."""
    folder = RunFolder(tmp_path / "run")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        with pytest.raises(CheckpointError, match="cannot write") as error:
            for event in train_task(*make(), folder=folder):
                if isinstance(event, Stepped) and event.step == 6:
                    size = folder.checkpoints.path(4).stat().st_size
                    resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, before[1]))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert error.value.hint is not None and "is the disk full" in error.value.hint
    assert folder.checkpoints.steps() == [0, 4]
    assert not list(folder.inside.glob(".*.part"))
    events = list(train_task(*make(), folder=folder))
    assert isinstance(events[0], Started) and events[0].step == 4
    assert isinstance(events[-1], Finished)


def test_models_that_are_kept_for_good(make: Make, tmp_path: Path) -> None:
    """Each is the model as it was after its step, and the first one as it began."""
    task, settings = make(keep_every=5)

    def weights() -> dict[str, torch.Tensor]:
        return {name: value.clone() for name, value in task.model.state_dict().items()}

    at_step = [weights()]
    for event in train_task(task, settings, folder=RunFolder(tmp_path)):
        if isinstance(event, Stepped) and event.step % 5 == 0:
            at_step.append(weights())
    kept = sorted((tmp_path / "checkpoints").iterdir())
    assert [path.name for path in kept] == ["step-00000000", "step-00000005", "step-00000010"]
    for path, state in zip(kept, at_step, strict=True):
        found = ch.load(path).model.state_dict()
        assert all(torch.equal(found[name], value) for name, value in state.items())
