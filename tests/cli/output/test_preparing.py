"""The CPU engine made ready on the command line: what is shown, and what becomes of the weights."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import clearhead as ch
from clearhead.checkpoints.load import Loaded
from clearhead.cli import loading
from clearhead.cli.generate import command
from clearhead.cli.output.preparing import ProgressLine, prepare_engine
from clearhead.engine.engine import engine_runs_here
from clearhead.errors import InputError
from clearhead.generation.runner_factory import make_runner

needs_engine = pytest.mark.skipif(not engine_runs_here(), reason="the engine does not run here")


def test_a_terminal_sees_how_far_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(loading, "PATIENCE", 0.0)
    line = ProgressLine()
    line.show(3, 41, "preparing")
    line.show(41, 41, "preparing")
    line.wipe()
    assert capsys.readouterr().err == "\r\x1b[Kpreparing: 3 of 41 …\r\x1b[K"


def test_a_file_gets_one_line_and_quick_work_none(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = ProgressLine()
    quick.show(1, 2, "preparing")
    quick.wipe()
    monkeypatch.setattr(loading, "PATIENCE", 0.0)
    slow = ProgressLine()
    slow.show(1, 3, "preparing")
    slow.show(2, 3, "preparing")
    slow.wipe()
    assert capsys.readouterr().err == "preparing …\n"


@needs_engine
def test_weights_are_let_go_and_the_engine_goes_on(decoder_folder: Path) -> None:
    kept, lean = ch.load(decoder_folder), ch.load(decoder_folder)
    prepare_engine(lean, None)
    assert next(lean.model.parameters()).is_meta
    texts = [
        "".join(event.text for event in ch.generate(loaded, "the door", max_tokens=9, seed=1))
        for loaded in (kept, lean)
    ]
    assert texts[0] == texts[1] != ""
    with pytest.raises(InputError, match=r"float32 weights of .* were freed"):
        make_runner(lean, engine=False)


def test_nothing_happens_where_torch_is_wanted(decoder_folder: Path) -> None:
    loaded = ch.load(decoder_folder)
    prepare_engine(loaded, False)
    assert next(loaded.model.parameters()).is_cpu


@needs_engine
def test_the_command_writes_by_the_engine(decoder_folder: Path) -> None:
    options = ["the door", "-m", str(decoder_folder), "-n", "7", "--temperature", "0"]
    by_engine = CliRunner().invoke(command, options)
    assert by_engine.exit_code == 0
    wanted = "".join(
        event.text
        for event in ch.generate(
            ch.load(decoder_folder), "the door", max_tokens=7, temperature=0, engine=True
        )
    )
    assert by_engine.stdout == wanted + "\n"


def test_it_says_why_torch_runs_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = ch.ModelConfig(
        kind="decoder", vocab=23, context=32, model=8, layers=1, heads=2, feed_forward=8,
        positions="alibi",
    )  # fmt: skip
    model = ch.Decoder(config)
    loaded = Loaded("sloping", tmp_path, model, config, None)
    prepare_engine(loaded, False)
    assert capsys.readouterr().err == ""
    prepare_engine(loaded, None)
    assert capsys.readouterr().err == (
        "torch runs sloping, not the faster CPU engine: its positions are alibi.\n"
    )
    with pytest.raises(InputError, match="does not support sloping as it is: its positions are a"):
        make_runner(loaded, engine=True)
