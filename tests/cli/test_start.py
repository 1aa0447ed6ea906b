from __future__ import annotations

import os
import subprocess
import sys

import pytest

from clearhead.cli.start import SPINS


def test_the_start_imports_nothing_heavy() -> None:
    """So that there is no time in which Ctrl-C would show a traceback."""
    code = "import clearhead.cli.start, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert not {"click", "torch", "numpy", "rich"} & set(done.stdout.split())


def test_the_program_starts_here() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from clearhead.cli.start import main; main()", "--version"],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.stdout.startswith("clearhead, version ")


@pytest.mark.parametrize(
    ("given", "spins"),
    [({}, SPINS), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "active"}, "None")],
    ids=str,
)
def test_waiting_threads_sleep_soon_unless_told_otherwise(
    given: dict[str, str], spins: str
) -> None:
    names = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")
    environment = {name: text for name, text in os.environ.items() if name not in names}
    code = "import os, clearhead.cli.start; print(os.environ.get('GOMP_SPINCOUNT'))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120,
        env=environment | given,
    )  # fmt: skip
    assert done.stdout.strip() == spins
