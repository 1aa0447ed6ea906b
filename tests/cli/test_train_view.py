"""The view of a run: what is printed for each event."""

from __future__ import annotations

from pathlib import Path

import pytest

from clearhead.cli.train_view import TrainView
from clearhead.training.events import Event, Finished, Sampled, Started, Stepped, Validated
from clearhead.training.plan import Plan
from clearhead.training.run_folder import RunFolder
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
    assert "language model of 12,345 parameters, vocabulary 1,031; 900 tokens" in shown
    assert "100 held out to validate on (10.0%); one epoch is 7 steps" in shown
    assert "step      1  validation loss 2.0000" in shown
    assert "once upon → a time" in shown
    assert "validation loss 2.0000, weights of step 1 (stopped early" in shown
    assert f"generate --model {out} 'once upon'" in shown
    assert (out / "training" / "curve.svg").exists()


def test_the_shown_loss_and_speed_are_means(tmp_path: Path) -> None:
    view = TrainView(tmp_path, tensorboard=False)
    for step, loss in ((1, 4.0), (2, 2.0)):
        view.recent.append(Stepped(step, loss, 300, 0.5, 1.0, 0.5, None))
    assert view._state(view.recent[-1]) == "step 2  loss 3.000  600 tokens/s"
