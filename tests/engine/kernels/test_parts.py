"""Compiled code on disk: found again, and never once any kernel has changed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import clearhead
from clearhead.engine.engine import engine_runs_here

pytestmark = pytest.mark.skipif(not engine_runs_here(), reason="no OpenMP or half precision here")

PROGRAM = """
import numba, torch
from clearhead.engine.weights import pack_matrix
print(pack_matrix(torch.full((16, 32), 0.4) + torch.arange(32) / 9).dequantised().sum().item())
from clearhead.engine.kernels.weight_packing import pack_weights
from clearhead.kernels.compiling import compiled
print(compiled(pack_weights, numba.types.void(numba.types.int64)).cache_hits)
"""


def packed(folder: Path) -> tuple[float, int]:
    """What a process of its own finds, with the package in this folder."""
    environment = os.environ | {"PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(folder / "kept")}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    total, hits = done.stdout.split()
    return float(total), int(hits)


def test_a_changed_kernel_is_compiled_anew(tmp_path: Path) -> None:
    package = tmp_path / "clearhead"
    shutil.copytree(
        Path(clearhead.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )
    first, hits = packed(tmp_path)
    assert hits == 0
    assert packed(tmp_path) == (first, 1)
    # a kernel that the compiled function's own file imports, which numba does not look at
    kernel = package / "kernels" / "vectors.py"
    source = kernel.read_text()
    assert "llvm.nearbyint" in source
    kernel.write_text(source.replace("llvm.nearbyint", "llvm.floor"))
    changed, hits = packed(tmp_path)
    assert hits == 0
    assert changed < first - 0.1
