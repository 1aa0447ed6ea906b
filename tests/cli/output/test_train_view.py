"""The view of a run: what is printed for each event."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from clearhead.cli.generate import command as generate
from clearhead.cli.output.train_view import TrainView
from clearhead.errors import MissingExtraError
from clearhead.training.events import (
    Event,
    Finished,
    Sampled,
    Started,
    Stepped,
    Stopped,
    Validated,
)
from clearhead.training.plan import Plan
from clearhead.training.run_folder import RunFolder
from clearhead.training.run_folder.checkpoint import Checkpoint
from clearhead.training.run_folder.log import EMPTY
from clearhead.training.run_folder.progress import Facts, Progress
from clearhead.training.sizes import language_config


def test_a_whole_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    folder = RunFolder(out)
    config = language_config("tiny", 1031)
    folder.begin(Plan(), config, None)
    folder.log.append({"step": 1, "loss": 3.0})
    folder.log.append({"step": 1, "validation": 2.0})
    events: list[Event] = [
        Started(0, 1, 12_345, 7, config, (900, 100)),
        Stepped(1, 3.0, 500, 0.25, 1.0, 0.5, 1),
        Validated(1, 2.0, True),
        Sampled(1, "once upon", "a  time"),
        Finished(1, "patience", 2.0, "step 1", out),
    ]
    view = TrainView(out, tensorboard=False)
    view.show(iter(events))
    view.finish()
    shown = capsys.readouterr().out
    assert "language model of 12,345 parameters, vocabulary 1,031\n900 tokens" in shown
    assert "100 held out to validate on (10.0%)\none epoch is 7 steps" in shown
    assert "step      1  validation loss 2.0000" in shown
    assert "once upon → a time" in shown
    assert "validation loss 2.0000, weights of step 1 (stopped early" in shown
    assert f"generate --model {out} 'once upon'" in shown
    assert (out / "training" / "curve.svg").exists()


def test_a_model_that_is_trained_further(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The start is shown beside the result; adapters say how they are merged."""
    out = tmp_path / "run"
    folder = RunFolder(out)
    config = language_config("tiny", 1031)
    folder.begin(Plan(), config, None)
    folder.log.append({"step": 0, "validation": 2.0})
    facts = Facts(Progress(seconds=150.0), EMPTY)
    folder.checkpoints.write(Checkpoint({}, {}, facts))
    (out / "adapter_config.json").write_text("{}")
    events: list[Event] = [
        Started(0, 1, 12_345, 7, config, (900, 100), 345, 40, "3 of 25 texts and the end of 1"),
        Validated(0, 2.0, True),
        Validated(1, 2.5, False),
        Finished(1, "steps", 2.0, "step 0", out),
    ]
    view = TrainView(out, tensorboard=False)
    view.show(iter(events))
    view.finish()
    shown, warned = capsys.readouterr()
    assert "345 of the parameters are trained (2.79%)" in shown
    assert "held out: 3 of 25 texts and the end of 1" in shown
    assert "each validation takes 40 of the tokens that are held out" in shown
    assert "step      0  validation loss 2.0000  (before training)" in shown
    assert "step      1  validation loss 2.5000  (not the best)" in shown
    assert "validation loss 2.0000 (2.0000 before training), weights of step 0" in shown
    assert "training has not improved on the start" in " ".join(warned.split())
    assert f"models merge {out} {out}-merged" in shown
    assert f"train --resume --out {out} --minutes 5" in shown


@pytest.mark.parametrize(
    ("prompt", "shown"),
    [
        ("a text", "'a text'"),
        ("- [ ] a list", "-- '- [ ] a list'"),
        ("--- title: x", "-- '--- title: x'"),
        ("-1", "-- -1"),
        ("$HOME `x`", "'$HOME `x`'"),
        ("", "Once"),
    ],
)
def test_a_prompt_is_never_taken_for_an_option(prompt: str, shown: str, tmp_path: Path) -> None:
    view = TrainView(tmp_path / "run", tensorboard=False)
    view.sample = Sampled(1, prompt, "…")
    commands = dict(view._next_commands(language_config("tiny", 300)))
    assert f"generate --model {tmp_path / 'run'} {shown}" in commands["try it:"]
    context = generate.make_context("generate", shlex.split(commands["try it:"])[2:])
    assert context.params["prompt"] == (prompt or "Once")
    assert context.params["model"] == str(tmp_path / "run")


def test_what_is_not_installed_is_told_before_the_run_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(MissingExtraError, match="--tensorboard needs"):
        TrainView(tmp_path / "run", tensorboard=True)


def test_the_shown_loss_and_speed_are_means(tmp_path: Path) -> None:
    view = TrainView(tmp_path, tensorboard=False)
    for step, loss in ((1, 4.0), (2, 2.0)):
        view.recent.append(Stepped(step, loss, 300, 0.5, 1.0, 0.5, None))
    assert view._state(view.recent[-1]) == "step 2  loss 3.000  600 tokens/s"


def test_the_lines_fit_80_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = language_config("tiny", 49_152)
    long = "so long a text that it has no end, " * 9
    events: list[Event] = [
        Started(0, 100, 134_515_008, 90_000, config, (10**9, 10**8), 10**7, 4096,
                "1,234 of 12,345 texts and the end of 12"),
        Validated(0, 3.5106, True, 1.4388),
        Validated(10_000, 3.5106, False, 1.4388),
        Sampled(10_000, long, long),
        Stopped(10_000, None),
    ]  # fmt: skip
    view = TrainView(tmp_path / "run", tensorboard=False)
    view.show(iter(events))
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) >= 7 and max(map(len, shown)) <= 80
