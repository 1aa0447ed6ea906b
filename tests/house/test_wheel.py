"""The wheel that users install: it holds every file of the package, and it works on its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

import clearhead
from tests.shared.chromium import page_at

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "clearhead"
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.egg-info")
DIST_INFO = f"clearhead-{clearhead.__version__}.dist-info"
METADATA = (
    "METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE", "top_level.txt",
)  # fmt: skip
DATE = ("2024-05-17", "--model", "dates", "--source", "17 May 2024")

pytestmark = pytest.mark.slow


class Installed(NamedTuple):
    """An environment in which clearhead comes out of the wheel only."""

    folder: Path

    def run(self, command: str, *arguments: str) -> str:
        """Runs a program of the environment, away from the tree; fails if the program does."""
        own = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
        environment = {name: value for name, value in os.environ.items() if name not in own}
        done = subprocess.run(
            [self.folder / "bin" / command, *arguments],
            cwd=self.folder,
            env=environment | {"COLUMNS": "100", "PYTHONUTF8": "1"},
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


def run_pip(*arguments: str | Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy of the tree: files of an earlier build would otherwise slip in."""
    tree, out = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    shutil.copytree(SOURCE, tree / "src" / "clearhead", ignore=LEFT_OUT)
    run_pip("wheel", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", out, tree)
    (built,) = out.iterdir()
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """A new environment with the wheel. torch and the others are those of the tests.

    A path in a ``.pth`` file lends the modules in it, but does not run the ``.pth`` files in it:
    the editable clearhead of the tests stays away.
    """
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    run_pip("--python", python, "install", "--no-deps", "--no-index", wheel)
    (site_packages,) = folder.glob("lib/python*/site-packages")
    lent = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (site_packages / "lent.pth").write_text("\n".join(sorted(lent)) + "\n")
    return Installed(folder)


def test_it_holds_every_file_of_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as file:
        held = {name for name in file.namelist() if not name.endswith("/")}
    package = {
        path.relative_to(SOURCE.parent).as_posix()
        for path in SOURCE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {"clearhead/py.typed", "clearhead/views/page/assets/view.js"} <= package
    assert held == package | {f"{DIST_INFO}/{name}" for name in METADATA}


def test_it_is_the_wheel_that_runs(installed: Installed) -> None:
    code = (
        "import clearhead, importlib.metadata as metadata;"
        "print(clearhead.__file__); print(metadata.version('clearhead'))"
    )
    file, version = installed.run("python", "-c", code).split()
    assert Path(file).is_relative_to(installed.folder)
    assert version == clearhead.__version__
    assert installed.run("clearhead", "--version") == f"clearhead, version {version}\n"


def test_a_worked_example(installed: Installed) -> None:
    shown = installed.run("clearhead", "steps", "action")
    assert "Action" in shown and "[2 2 2 2]" in shown


def test_a_look_with_the_model_in_the_package(installed: Installed) -> None:
    shown = installed.run("clearhead", "look", *DATE)
    assert "17 May 2024" in shown and "2024-05-17" in shown


@pytest.mark.browser
def test_its_page_opens(installed: Installed, tmp_path: Path) -> None:
    out = tmp_path / "look.html"
    installed.run("clearhead", "look", *DATE, "--html", str(out))
    with page_at(tmp_path, out.read_text(encoding="utf-8")) as page:
        page.wait_for_selector("[data-ready]")
        assert page.locator(".headline").inner_text()
        assert page.locator(".bar").count() > 0
