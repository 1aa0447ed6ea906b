"""clearhead train: from files to a folder that the other commands open."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import clearhead as ch
from clearhead.cli.train import command
from clearhead.cli.translate import command as translate

SMALL = [
    "--set", "model=16", "--set", "layers=1", "--set", "heads=2", "--set", "feed_forward=24",
    "--set", "batch_tokens=500", "--set", "validate_every=5", "--set", "warmup=2",
]  # fmt: skip


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command, [*arguments, "--device", "cpu"])


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("the quick brown fox jumps over the lazy dog. " * 60)
    return path


def test_text_to_a_model_that_generates(text: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run(str(text), "--out", str(out), "--steps", "10", *SMALL, "--set", "context=24",
               "--tokenizer", "characters")  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "language model of" in done.stdout
    assert "validation loss" in done.stdout and "● validation" in done.stdout
    assert f" generate --model {out}" in done.stdout
    assert (out / "training" / "curve.svg").read_text().startswith("<svg")
    loaded = ch.load(out)
    assert loaded.config.model == 16
    events = ch.generate(loaded, "the quick", max_tokens=5, engine=False)
    assert len(list(events)) >= 1
    again = run("--resume", "--out", str(out))  # a finished run stays finished
    assert again.exit_code == 0 and "continues after step 10" in again.stdout


def test_pairs_to_a_model_that_translates(tmp_path: Path) -> None:
    table, out = tmp_path / "pairs.tsv", tmp_path / "out"
    table.write_text("".join(f"number {n}\t{n}\n" for n in range(200)))
    done = run("--pairs", str(table), "--out", str(out), "--steps", "5", *SMALL,
               "--set", "encoder_layers=1", "--vocabulary", "270")  # fmt: skip
    assert done.exit_code == 0, done.output
    assert f" translate --model {out}" in done.stdout
    plan = json.loads((out / "training" / "run.json").read_text())["plan"]
    assert plan["settings"]["label_smoothing"] == 0.1
    shown = CliRunner().invoke(translate, ["-m", str(out), "--no-engine", "-n", "4", "number 7"])
    assert shown.exit_code == 0


def test_what_is_refused(text: Path, tmp_path: Path) -> None:
    def said(*arguments: str) -> str:
        done = run(*arguments, "--out", str(tmp_path / "out"))
        assert done.exit_code != 0
        return str(done.exception) + done.output

    assert "not both" in said(str(text), "--steps", "3", "--minutes", "1")
    assert "--set wants NAME=VALUE" in said(str(text), "--set", "layers")
    assert "has a field colour" in said(str(text), "--set", "colour=3")
    assert "no size 'huge'" in said(str(text), "--size", "huge")
    assert "layers must be 1 or more" in said(str(text), "--set", "layers=0")
    assert "no run to resume" in said("--resume")
    assert "pairs come from two files" in said("--pairs")
    (tmp_path / "out").mkdir(exist_ok=True)
    (tmp_path / "out" / "letter.txt").write_text("dear …")
    assert "is not empty" in said(str(text))
    device = CliRunner().invoke(command, [str(text), "--device", "toaster"])
    assert "there is no device 'toaster'" in str(device.exception)
