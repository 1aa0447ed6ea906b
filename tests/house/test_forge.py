"""The files that forges and users of a release read: they agree with the project."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import clearhead

ROOT = Path(__file__).resolve().parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
FILES = sorted(
    [
        ROOT / ".pre-commit-config.yaml",
        ROOT / "CITATION.cff",
        *(ROOT / ".github").rglob("*.yml"),
    ]
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.name))
def test_it_is_yaml(path: Path) -> None:
    assert isinstance(yaml.safe_load(path.read_text()), dict)


def test_the_version_has_one_source() -> None:
    assert PROJECT["project"]["dynamic"] == ["version"] and "version" not in PROJECT["project"]
    assert PROJECT["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "clearhead.__version__"}
    assert importlib.metadata.version("clearhead") == clearhead.__version__
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == clearhead.__version__


def test_the_command_line_tells_the_version() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "clearhead", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"clearhead, version {clearhead.__version__}\n"


def test_the_licence_is_the_same_everywhere() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert PROJECT["project"]["license"] == citation["license"] == "Apache-2.0"
    assert "Apache License" in (ROOT / "LICENSE").read_text()


def test_ci_runs_the_test_command_and_may_only_read() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text())
    assert workflow["permissions"] == {"contents": "read"}
    job = workflow["jobs"]["test"]
    assert [step["run"] for step in job["steps"] if "run" in step] == ["./test"]
    oldest = PROJECT["project"]["requires-python"].removeprefix(">=")
    assert job["strategy"]["matrix"]["python"][0] == oldest
    assert "secrets" not in str(workflow)


def test_every_test_dependency_is_pinned() -> None:
    pinned = {
        line.split("==")[0].lower().replace("_", "-")
        for line in (ROOT / "constraints.txt").read_text().splitlines()
        if not line.startswith("#")
    }
    extras = PROJECT["project"]["optional-dependencies"]
    wanted = [
        *PROJECT["project"]["dependencies"],
        *extras["test"],
        *extras["hub"],
        *extras["bench"],
    ]
    names = {re.split("[<>=]", one)[0].lower().replace("_", "-") for one in wanted}
    assert sorted(names - pinned) == []


def test_help_names_every_option_of_the_test_command() -> None:
    script = (ROOT / "test").read_text()
    options = set(re.findall(r"^ +(--[a-z]+)\)", script, re.MULTILINE))
    assert {"--quick", "--coverage"} <= options
    done = subprocess.run([ROOT / "test", "--help"], capture_output=True, text=True, check=True)
    assert all(option in done.stdout for option in options)


def test_quick_leaves_out_every_mark() -> None:
    marks = {line.split(":")[0] for line in PROJECT["tool"]["pytest"]["ini_options"]["markers"]}
    left_out = re.search(r'-m "not \(([a-z ]+)\)"', (ROOT / "test").read_text())
    assert left_out is not None
    assert set(left_out.group(1).split(" or ")) == marks
