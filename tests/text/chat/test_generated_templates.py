"""Every template renders or is refused, within one second and 100 MB: hundreds of random ones."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.text.chat import generated_templates
from tests.text.chat.generated_templates import Grammar, Result, faults, tried, tried_apart


@pytest.mark.slow
def test_some_hundreds_of_templates() -> None:
    """In a program of its own: the checks of types that tests run with would cost time."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.text.chat.generated_templates", "300", "7"],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert " 0 faults" in done.stdout
    assert done.stderr == ""


def test_a_seed_gives_the_same_templates() -> None:
    one, other = Grammar(5), Grammar(5)
    assert [one.template() for _ in range(9)] == [other.template() for _ in range(9)]


def test_what_must_hold() -> None:
    assert faults(Result("", "rendered", 0.9, 99)) == []
    assert faults(Result("", "KeyError", 3.0, 200)) == ["KeyError", "3.0 s", "200 MB"]


def test_outcomes() -> None:
    assert tried("a").outcome == "rendered"
    assert tried("{{ raise_exception('no') }}").outcome == "refused"
    assert tried("{% if").outcome == "broken"


def test_a_template_that_hangs_or_crashes_would_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def render(source: str) -> Result:
        if source == "bad":
            import os

            os._exit(3)
        return Result(source, "rendered", 0, 0)

    monkeypatch.setattr(generated_templates, "tried", render)
    outcomes = [result.outcome for result in tried_apart(["a", "bad", "b"])]
    assert outcomes == ["rendered", "killed", "rendered"]
