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
