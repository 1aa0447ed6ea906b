"""Several processes: the same losses as one, a clear end when one is lost, resume on another
number of them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from clearhead.errors import InputError
from clearhead.training.processes import device_of, together
from clearhead.training.run_folder import RunFolder
from tests.shared.started_runs import start

pytestmark = pytest.mark.kill

OPTIONS = (
    "--tokenizer", "characters", "--steps", "10", "--set", "model=16", "--set", "layers=2",
    "--set", "heads=2", "--set", "feed_forward=24", "--set", "context=16",
    "--set", "batch_tokens=512", "--set", "validate_every=5", "--set", "accumulation=2",
    "--set", "precision=float32",  # Muon in bfloat16 makes rounding differences larger
    "--device", "cpu",
)  # fmt: skip
PATIENCE = 600.0  # seconds, on a busy machine


def difference(one: list[tuple[int, str, float]], other: list[tuple[int, str, float]]) -> float:
    assert [line[:2] for line in one] == [line[:2] for line in other]
    return max(abs(a[2] - b[2]) for a, b in zip(one, other, strict=True))


@pytest.fixture(scope="module")
def alone(text_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of one process that the others are compared with."""
    folder = tmp_path_factory.mktemp("alone") / "one"
    (run,) = start(str(text_file), *OPTIONS, "--out", str(folder))
    run.join(PATIENCE)
    assert run.exitcode == 0
    return folder


@pytest.mark.parametrize(("ranks", "options"), [(2, ()), (4, ()), (2, ("--shard",))])
def test_the_same_losses_as_one_process(
    ranks: int, options: tuple[str, ...], alone: Path, text_file: Path, tmp_path: Path,
    losses: Callable[[Path], Any],
) -> None:  # fmt: skip
    folder = tmp_path / "several"
    started = start(str(text_file), *OPTIONS, *options, "--out", str(folder), ranks=ranks)
    for process in started:
        process.join(PATIENCE)
    assert [process.exitcode for process in started] == [0] * ranks
    assert difference(losses(folder), losses(alone)) < 1e-5


def test_a_lost_process_ends_the_run_and_another_number_goes_on(
    alone: Path, text_file: Path, tmp_path: Path, losses: Callable[[Path], Any]
) -> None:
    folder = tmp_path / "lost"
    started = start(str(text_file), *OPTIONS, "--out", str(folder), ranks=3, lost=2)
    for process in started:
        process.join(PATIENCE)
    assert [process.exitcode for process in started] == [1, 1, -signal.SIGKILL]
    assert RunFolder(folder).checkpoints.steps()[-1] == 5
    said = (tmp_path / "lost-error-0").read_text()
    assert "process 2 of this run has ended, so process 0 cannot go on" in said
    assert "--resume" in said
    started = start("--resume", "--out", str(folder), "--device", "cpu", ranks=2)
    for process in started:
        process.join(PATIENCE)
    assert [process.exitcode for process in started] == [0, 0]
    assert difference(losses(folder), losses(alone)) < 1e-5


def test_a_signal_to_one_process_stops_all_after_the_same_step(
    text_file: Path, tmp_path: Path, losses: Callable[[Path], Any]
) -> None:
    folder = tmp_path / "stopped"
    options = [option if option != "10" else "100000" for option in OPTIONS]
    started = start(str(text_file), *options, "--out", str(folder), ranks=2)
    while started[1].is_alive() and not list(folder.glob("training/step-*5.safetensors")):
        time.sleep(0.001)
    started[1].terminate()
    for process in started:
        process.join(PATIENCE)
    assert [process.exitcode for process in started] == [143, 143]
    newest = RunFolder(folder).checkpoints.steps()[-1]
    assert newest == max(step for step, _, _ in losses(folder)) >= 5


def test_a_process_that_fails_says_why_to_the_others(text_file: Path, tmp_path: Path) -> None:
    """The first process finds the folder in use; the second one knows it from the first."""
    folder = RunFolder(tmp_path / "used")
    (alone,) = start(str(text_file), *OPTIONS, "--out", str(folder.folder))
    alone.join(PATIENCE)
    with folder.locked():
        started = start("--resume", "--out", str(folder.folder), "--device", "cpu", ranks=2)
        for process in started:
            process.join(PATIENCE)
    assert [process.exitcode for process in started] == [1, 1]
    said = [(tmp_path / f"used-error-{rank}").read_text() for rank in range(2)]
    assert f"process {os.getpid()} on " in said[0]
    assert "process 0 of this run has ended" in said[1] and "so process 1 cannot go on" in said[1]


def test_a_model_is_sharded_over_several_processes() -> None:
    with pytest.raises(InputError, match="sharded over several processes, and there is one"), \
            together(torch.device("cpu"), sharded=True):  # fmt: skip
        pass


def test_several_processes_without_torchrun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InputError, match="the 2 processes cannot be connected") as error, \
            together(torch.device("cpu")):  # fmt: skip
        pass
    assert error.value.hint is not None and "torchrun" in error.value.hint


def test_devices_by_name() -> None:
    assert device_of("cpu") == device_of(torch.device("cpu")) == torch.device("cpu")
    assert device_of("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")


def test_auto_is_the_cpu_without_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert device_of("auto") == torch.device("cpu")


def test_a_device_that_does_not_exist() -> None:
    with pytest.raises(InputError, match="there is no device 'toaster'"):
        device_of("toaster")
