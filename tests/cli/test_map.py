"""clearhead map: usage."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from clearhead.cli.map import command


@pytest.mark.parametrize("size", ["0", "2049", "many"])
def test_a_size_out_of_range(size: str) -> None:
    done = CliRunner().invoke(command, ["the door", "--size", size])
    assert done.exit_code == 2 and "--size" in done.output


def test_a_picture_is_written(decoder_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "map.svg"
    done = CliRunner().invoke(
        command, ["the door opened", "-m", str(decoder_folder), "--head", "L0H1", "--svg", str(out)]
    )
    assert done.exit_code == 0, done.output
    assert f"{out} is written" in done.output and "<svg" in out.read_text()
