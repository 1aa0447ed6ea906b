from __future__ import annotations

import subprocess
import sys


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
