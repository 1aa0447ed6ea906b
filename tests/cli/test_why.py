"""clearhead why: usage."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner, Result

from clearhead.cli.main import COMMANDS
from clearhead.cli.why import command

DATE = ["2021-", "--model", "dates", "--source", "3rd of March 2021"]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command, list(arguments))


def test_a_date_is_explained() -> None:
    done = run(*DATE)
    assert done.exit_code == 0
    assert "Why “0” and not" in done.output and "March" in done.output
    assert "exact, to" in done.output and "Try next:" in done.output


def test_files_are_written(tmp_path: Path) -> None:
    page, table = tmp_path / "why.html", tmp_path / "why.csv"
    done = run(*DATE, "--html", str(page), "--csv", str(table))
    assert done.exit_code == 0
    assert page.read_text().startswith("<!doctype html>") and "edge,C0H1" in table.read_text()


def test_json_of_chosen_tokens() -> None:
    done = run(*DATE, "--token", "0", "--instead", "2", "--no-ablate", "--json", "-")
    told = json.loads(done.output)
    assert told["instead"]["text"] == "2" and told["effects"] is None


def test_a_wrong_token_is_explained() -> None:
    done = run(*DATE, "--token", "03")
    assert done.exit_code != 0 and "is 2 tokens here" in str(done.exception)


def test_of_a_trace_the_weights_are_shown(tmp_path: Path) -> None:
    import clearhead as ch

    path = tmp_path / "a.trace"
    ch.look("dates", "3rd of March 2021").seen.save(path)
    done = run(str(path))
    assert done.exit_code == 0, done.output
    assert "March" in done.output and "Not explained: a trace has attention weights" in done.output


def test_it_is_a_command() -> None:
    assert COMMANDS["why"] == "clearhead.cli.why"
