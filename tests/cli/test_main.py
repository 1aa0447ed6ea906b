"""The command line as a user calls it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from clearhead.cli.main import COMMANDS


def clearhead(
    *arguments: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "clearhead", *arguments],
        capture_output=True, text=True, timeout=120, env=env,
    )  # fmt: skip


@pytest.mark.download
def test_without_arguments_the_main_job_runs() -> None:
    done = clearhead()
    assert done.returncode == 0
    assert "“they” looks most at “kids” (0.60) in L16H5" in done.stdout
    assert "Try next" in done.stdout


def test_help_names_every_command() -> None:
    done = clearhead("--help")
    assert done.returncode == 0
    for command in COMMANDS:
        assert f"\n  {command} " in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["bogus"], "there is no command 'bogus'"), (["steps", "--bogus"], "No such option")],
)
def test_wrong_usage_is_explained_without_a_traceback(arguments: list[str], message: str) -> None:
    done = clearhead(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_errors_come_with_a_hint_and_without_a_traceback() -> None:
    done = clearhead("models", "info", "nonsense")
    assert done.returncode == 1
    assert done.stderr.startswith("Error: there is no model named 'nonsense'")
    assert "Hint: " in done.stderr
    assert "Traceback" not in done.stderr


def test_a_reader_that_goes_away_is_no_error() -> None:
    code = f"{sys.executable} -m clearhead steps action | head -1"
    done = subprocess.run(code, shell=True, capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith("where 'Action' looks")
    assert done.stderr == ""
