"""Nothing is lost: runs killed or signalled at random moments end with the same numbers."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.shared.started_runs import start

pytestmark = pytest.mark.kill

OPTIONS = (
    "--tokenizer", "characters", "--steps", "5", "--set", "model=16", "--set", "layers=2",
    "--set", "heads=2", "--set", "feed_forward=24", "--set", "context=16",
    "--set", "batch_tokens=256", "--set", "warmup=3", "--device", "cpu",
)  # fmt: skip
PATIENCE = 600.0  # seconds, on a busy machine


@pytest.mark.parametrize(
    ("program", "option", "said"),
    [
        ("kills", "--kills", "7 kills"),
        ("kills", "--signals", "4 signals"),
        ("flips", "--flips", "5 flips"),
    ],
)
def test_bit_for_bit_as_undisturbed(program: str, option: str, said: str) -> None:
    """The two commands with a few kills, signals and flips of another seed each time."""
    wanted = said.split()[0]
    done = subprocess.run(
        [sys.executable, "-m", f"tests.training.{program}", option, wanted],
        capture_output=True, text=True, timeout=1200, check=False,
        cwd=Path(__file__).resolve().parents[2],
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[0]) >= int(wanted)


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
    (again,) = start(str(text_file), *OPTIONS, "--out", str(folder))
    again.join(PATIENCE)
    assert again.exitcode == 1
    assert "not empty" in (tmp_path / "early-error-0").read_text()


def test_a_second_process_is_refused_and_touches_nothing(text_file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    (first,) = start(str(text_file), *OPTIONS[:2], "--minutes", "5", *OPTIONS[4:],
                     "--out", str(folder))  # fmt: skip
    while first.is_alive() and not (folder / "config.json").exists():
        time.sleep(0.005)
    scratch = folder / "training" / ".scratch.part"
    scratch.write_text("of the first")
    (second,) = start("--resume", "--out", str(folder), "--device", "cpu")
    second.join(PATIENCE)
    assert second.exitcode == 1
    said = (tmp_path / "run-error-0").read_text()
    assert f"process {first.pid} on " in said and "is training in" in said
    assert scratch.exists() and first.is_alive()
    first.terminate()  # SIGTERM: it saves, and says how to go on
    first.join(PATIENCE)
    assert first.exitcode == 143
