"""clearhead train: from files to a folder that the other commands open."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import clearhead as ch
from clearhead.cli.train import command
from clearhead.cli.translate import command as translate
from clearhead.training.run_folder import RunFolder

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
    assert "got 'huge'" in said(str(text), "--size", "huge")
    assert "layers must be 1 or more" in said(str(text), "--set", "layers=0")
    assert "no run to resume" in said("--resume")
    assert "--set gives layers twice" in said(str(text), "--set", "layers=1", "--set", "layers=2")
    assert "steps is given twice" in said(str(text), "--steps", "3", "--set", "steps=5")
    assert "seed is given twice" in said(str(text), "--seed", "3", "--set", "seed=5")
    assert "not both" in said(str(text), "--minutes", "3", "--set", "steps=5")
    assert "size is for a new model" in said(str(text), "--from", "dates", "--size", "tiny")
    assert "sharded over several processes" in said(str(text), "--shard")
    assert "vocabulary size is for bpe" in said(
        str(text), "--tokenizer", "characters", "--vocabulary", "300"
    )
    assert "pairs come from two files" in said("--pairs")
    assert "standard input is for texts; pairs come" in said("--pairs", "-")
    assert "standard input is for texts; chats come" in said("--chats", "-", "--from", "smollm2")
    field = ["--chats", str(text), "--from", "smollm2", "--field", "body"]
    assert "field is for texts in JSON Lines; chats have none" in said(*field)
    (tmp_path / "out").mkdir(exist_ok=True)
    (tmp_path / "out" / "letter.txt").write_text("dear …")
    assert "is not empty" in said(str(text))
    device = CliRunner().invoke(command, [str(text), "--device", "toaster"])
    assert "there is no device 'toaster'" in str(device.exception)


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of four steps."""
    place = tmp_path_factory.mktemp("begun")
    text, out = place / "text.txt", place / "out"
    text.write_text("the quick brown fox jumps over the lazy dog. " * 60)
    done = run(str(text), "--out", str(out), "--steps", "4", *SMALL, "--tokenizer", "characters",
               "--set", "context=24", "--seed", "3")  # fmt: skip
    assert done.exit_code == 0, done.output
    return out


# Every option of the command beside --resume: other values, and what becomes of them.
REFUSED: dict[str, list[str]] = {
    "texts": ["/other.txt"], "pairs": ["--pairs"], "start_from": ["--from", "dates"],
    "size": ["--size", "small"], "tokenizer": ["--tokenizer", "bpe"],
    "vocabulary": ["--vocabulary", "300"], "validation": ["--validation", "/other.txt"],
    "seed": ["--seed", "0"], "shard": ["--shard"], "changes": ["--set", "clip=0.5"],
    "chats": ["--chats"], "lora": ["--lora", "3"],
    "freeze": ["--freeze", "embeddings"], "field": ["--field", "other"],
}  # fmt: skip
OBEYED = {
    "steps": ["--steps", "6"],
    "minutes": ["--minutes", "0.01"],
    "device": [],  # every call of this test gives it: where a run computes may change
    "tensorboard": [],  # what is shown, not what is computed
    "out": [],
    "resume": [],
}


def test_every_option_has_its_place_beside_resume() -> None:
    assert {parameter.name for parameter in command.params} == set(REFUSED) | set(OBEYED)


@pytest.mark.parametrize("name", REFUSED)
def test_an_option_that_would_change_a_run_is_refused(name: str, begun: Path) -> None:
    done = run("--resume", "--out", str(begun), *REFUSED[name])
    said = str(done.exception) + done.output
    shown = {"changes": "clip", "shard": "sharded over several"}.get(name, f"other {name}")
    assert done.exit_code != 0 and shown in said, said


def test_a_run_is_made_longer(begun: Path, tmp_path: Path) -> None:
    out = tmp_path / "longer"
    shutil.copytree(begun, out)
    short = run("--resume", "--out", str(out), "--steps", "2")
    assert short.exit_code == 1 and "already, so it cannot end after" in str(short.exception)
    done = run("--resume", "--out", str(out), "--steps", "6")
    assert done.exit_code == 0 and "continues after step 4" in done.stdout, done.output
    plan = json.loads((out / "training" / "run.json").read_text())["plan"]
    assert plan["settings"]["steps"] == 6
    assert RunFolder(out).checkpoints.steps()[-1] == 6


def test_a_loss_that_rises_is_not_a_silent_success(text: Path, tmp_path: Path) -> None:
    done = run(str(text), "--out", str(tmp_path / "out"), "--steps", "24", *SMALL, "--tokenizer",
               "characters", "--set", "optimiser=adamw", "--set", "learning_rate=30",
               "--set", "clip=0", "--set", "schedule=inverse-square-root",
               "--set", "context=24")  # fmt: skip
    assert done.exit_code == 3
    assert "Warning: the loss has risen" in done.stderr
    assert "Hint: lower learning_rate" in done.stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_saves_and_says_how_to_go_on(
    number: signal.Signals, code: int, text: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    log = out / "training" / "log.jsonl"
    done_with = threading.Event()

    def send() -> None:
        while not (log.exists() and log.read_text()):
            if done_with.wait(0.01):
                return
        os.kill(os.getpid(), number)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        options = ["--steps", "100000", "--set", "context=24", "--tokenizer", "characters"]
        done = run(str(text), "--out", str(out), *SMALL, *options)
    finally:
        done_with.set()
        thread.join()
    assert done.exit_code == code
    (newest,) = RunFolder(out).checkpoints.steps()[-1:]
    assert newest == RunFolder(out).log.lines()[-1]["step"] >= 1
    assert f"stopped after step {newest}." in done.stderr
    assert f"step-{newest:08}.safetensors" in done.stderr
    assert f"train --resume --out {out}" in done.stderr
