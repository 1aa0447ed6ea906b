"""The folder of a run: its plan, its texts and its log."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest

from clearhead.errors import CheckpointError, InputError
from clearhead.training.run_folder import RunFolder


def test_a_run_begins_in_a_folder_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is not empty"):
        RunFolder(tmp_path).begin({})
    with pytest.raises(InputError, match="no run to resume"):
        RunFolder(tmp_path / "new").plan()


def test_the_plan_comes_after_the_files_that_it_refers_to(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.begin({"size": "tiny"}, {"training/texts.jsonl": '"a"\n'})
    assert folder.begun and folder.plan() == {"size": "tiny"}
    assert (folder.inside / "texts.jsonl").read_text() == '"a"\n'
    with pytest.raises(InputError, match="is not empty") as error:
        folder.check_new()
    assert error.value.hint is not None and "--resume (resume=True)" in error.value.hint


def test_the_log_is_cut_after_a_step(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.begin({})
    for step in (1, 2, 3):
        folder.log({"step": step, "loss": 1 / step})
    with (folder.inside / "log.jsonl").open("a") as log:
        log.write('{"step": 4, "lo')  # cut off by a crash
    (folder.inside / ".step-4.part").write_text("half")
    assert [line["step"] for line in folder.lines()] == [1, 2, 3]
    folder.rewind(2)
    assert folder.lines() == [{"step": 1, "loss": 1.0}, {"step": 2, "loss": 0.5}]
    assert not list(folder.inside.glob(".*"))
    assert json.loads((folder.inside / "run.json").read_text()) == {}


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("clearhead.training.run_folder.write_json", full)
    with pytest.raises(CheckpointError, match=r"cannot write into .*No space left on device"):
        RunFolder(tmp_path / "run").begin({})
