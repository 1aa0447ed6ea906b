"""clearhead diff: usage."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from clearhead.cli.diff import command


def test_something_to_compare_with_is_needed(decoder_folder: Path) -> None:
    done = CliRunner().invoke(command, ["the door", "-m", str(decoder_folder)])
    assert done.exit_code == 2
    assert "a second text, --other-model or --other-head is missing" in done.output


def test_two_texts_as_json(decoder_folder: Path) -> None:
    done = CliRunner().invoke(
        command, ["the door", "the books", "-m", str(decoder_folder), "--json", "-"]
    )
    assert done.exit_code == 0 and json.loads(done.stdout)


def test_two_texts_are_patched(decoder_folder: Path) -> None:
    done = CliRunner().invoke(
        command,
        ["--patch", "the door the", "the books the", "-m", str(decoder_folder), "--json", "-"],
    )
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["insight"] == "PatchMap" and abs(told["whole"] - 1) < 1e-4


def test_options_that_do_not_go_together() -> None:
    for arguments, said in (
        (["--patch", "the door"], "--patch takes two texts"),
        (["a b", "a c", "--token", "x"], "--token is for --patch"),
        (["--patch", "a b", "a c", "--other-head", "L0H0"], "--other-head has no use with --patch"),
    ):
        done = CliRunner().invoke(command, arguments)
        assert done.exit_code == 2 and said in done.output
