"""Some mutants of every format, and every exhibit.

A million: ``python -m tests.hostile --mutants 1000000``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hostile.exhibit import FOLDER
from tests.hostile.formats import FORMATS

ROOT = Path(__file__).resolve().parents[2]
MUTANTS = 1500


def hostile(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command: a process of its own, in which types and shapes are not checked."""
    command = [sys.executable, "-m", "tests.hostile", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_mutants_load_or_are_refused(tmp_path: Path) -> None:
    counts = tmp_path / "counts.json"
    done = hostile("--mutants", str(MUTANTS), "--sample", "--summary", str(counts))
    assert done.returncode == 0, done.stderr[-5000:]
    found = json.loads(counts.read_text())
    assert found.keys() == FORMATS.keys()
    for name, outcomes in found.items():
        assert outcomes["failures"] == []
        tried = outcomes["refused"] + outcomes["loaded"]
        assert tried > 0, name
        assert tried < 50 or min(outcomes["refused"], outcomes["loaded"]) > 0, name


@pytest.mark.slow
def test_exhibits_load_or_are_refused() -> None:
    done = hostile("--replay")
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    assert len(done.stdout.splitlines()) == len(list(FOLDER.glob("*.json"))) > 0
