"""Nothing is lost: runs killed at random moments end with the same numbers, bit for bit."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from tests.shared.started_runs import start

pytestmark = pytest.mark.kill

OPTIONS = (
    "--tokenizer", "characters", "--steps", "28", "--set", "model=16", "--set", "layers=2",
    "--set", "heads=2", "--set", "feed_forward=24", "--set", "context=16",
    "--set", "batch_tokens=256", "--set", "validate_every=4", "--set", "warmup=3",
    "--set", "dropout=0.1", "--set", "average=3", "--device", "cpu",
)  # fmt: skip
PATIENCE = 60.0  # seconds


def lines_of(folder: Path) -> int:
    log = folder / "training" / "log.jsonl"
    return len(log.read_bytes().splitlines()) if log.exists() else 0


def kill_after(process: Any, folder: Path, lines: int, moment: float) -> bool:
    """Kill a run some moment after its log has so many lines; False if it ended before."""
    began = time.monotonic()
    while process.is_alive() and lines_of(folder) < lines:
        assert time.monotonic() - began < PATIENCE, "the run does not get on"
        time.sleep(0.002)
    time.sleep(moment)
    was_alive = process.is_alive()
    process.kill()
    process.join()
    return bool(was_alive)


def test_killed_runs_end_the_same(
    text_file: Path, tmp_path: Path, losses: Callable[[Path], Any]
) -> None:
    (whole,) = start(str(text_file), *OPTIONS, "--out", str(tmp_path / "whole"))
    generator, folder, kills = random.Random(), tmp_path / "killed", 0
    (run,) = start(str(text_file), *OPTIONS, "--out", str(folder))
    for lines in (1, 13, 25):
        kills += kill_after(run, folder, lines, generator.random() * 0.05)
        (run,) = start("--resume", "--out", str(folder), "--device", "cpu")
    run.join(PATIENCE)
    whole.join(PATIENCE)
    assert (run.exitcode, whole.exitcode) == (0, 0)
    assert kills >= 2
    assert losses(folder) == losses(tmp_path / "whole")
    models = [load_file(path / "model.safetensors") for path in (folder, tmp_path / "whole")]
    assert all(bool((models[0][name] == models[1][name]).all()) for name in models[1])
    assert not list(folder.rglob("*.part"))


def test_a_kill_before_anything_was_done(text_file: Path, tmp_path: Path) -> None:
    """Killed while it starts, a run is begun again by the same command or by --resume."""
    folder = tmp_path / "early"
    (run,) = start(str(text_file), *OPTIONS, "--out", str(folder))
    while run.is_alive() and not (folder / "training" / "run.json").exists():
        time.sleep(0.0005)
    run.kill()
    run.join()
    (run,) = start("--resume", "--out", str(folder), "--device", "cpu")
    run.join(PATIENCE)
    assert run.exitcode == 0
    with pytest.raises(AssertionError, match="not empty"):
        (again,) = start(str(text_file), *OPTIONS, "--out", str(folder))
        again.join(PATIENCE)
        raise AssertionError((tmp_path / "early-error-0").read_text())
