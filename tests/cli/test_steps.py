"""clearhead steps: usage."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from clearhead.cli.steps import command


def test_an_example_as_json() -> None:
    done = CliRunner().invoke(command, ["selfish", "--json", "-"])
    assert done.exit_code == 0 and json.loads(done.output)


def test_an_example_name_with_a_model_is_a_text(decoder_folder: Path) -> None:
    done = CliRunner().invoke(command, ["the door", "-m", str(decoder_folder), "--head", "L1H3"])
    assert (
        done.exit_code == 0
        and f"look 'the door' --model {decoder_folder} --head L1H3" in done.output
    )


def test_a_word_of_an_example_is_chosen() -> None:
    done = CliRunner().invoke(command, ["action", "--word", "gets"])
    assert done.exit_code == 0 and "gets" in done.output.splitlines()[0]
    wrong = CliRunner().invoke(command, ["action", "--word", "get"])
    assert "the queries are Action, gets, results" in str(wrong.exception)
