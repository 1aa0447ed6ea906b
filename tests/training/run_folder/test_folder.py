"""The folder of a run: its record, its texts, its tokenizer, and who may begin in it."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from clearhead.errors import CheckpointError, InputError
from clearhead.text import CharacterTokenizer
from clearhead.training.plan import Plan
from clearhead.training.run_folder import RunFolder
from clearhead.training.run_folder.checksum import DamagedError
from clearhead.training.sizes import language_config

CONFIG = language_config("tiny", 11)
TEXTS = {"texts.jsonl": '"a"\n'}


def begun(path: Path) -> RunFolder:
    folder = RunFolder(path)
    plan = Plan(texts=("texts.jsonl",), settings={"steps": 3})
    folder.begin(plan, CONFIG, CharacterTokenizer("abcdefg"), TEXTS)
    return folder


def test_a_run_begins_in_a_folder_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is not empty"):
        begun(tmp_path)
    with pytest.raises(InputError, match="no run to resume"):
        RunFolder(tmp_path / "new").record()


def test_a_place_where_no_folder_can_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file is a file; a run begins in a folder of its own"):
        begun(tmp_path / "file")
    with pytest.raises(CheckpointError, match="cannot write into") as error:
        begun(tmp_path / "file" / "run")
    assert error.value.hint is not None and "Nothing has begun" in error.value.hint


def test_the_record_comes_after_the_files_that_it_refers_to(tmp_path: Path) -> None:
    folder = begun(tmp_path / "run")
    record = folder.record()
    assert record.plan.texts == ("texts.jsonl",) and record.model["layers"] == CONFIG.layers
    names = ("tokenizer.json", "tokenizer_config.json", "vocabulary.json")
    assert sorted(record.files) == ["texts.jsonl", *(f"tokenizer/{name}" for name in names)]
    assert folder.checked("texts.jsonl").read_text() == '"a"\n'
    assert folder.tokenizer().encode("abc") == CharacterTokenizer("abcdefg").encode("abc")
    with pytest.raises(InputError, match="is not empty") as error:
        folder.check_new()
    assert error.value.hint is not None and "--resume (resume=True)" in error.value.hint


def test_a_beginning_that_was_cut_off_begins_again(tmp_path: Path) -> None:
    folder = begun(tmp_path / "run")
    (folder.inside / "run.json").unlink()
    (folder.inside / ".run.json.1234.part").write_text("half")
    (folder.inside / "tokenizer" / "rest").write_text("of something")
    assert sorted(begun(tmp_path / "run").record().files) == sorted(folder.record().files)
    assert folder.tokenizer().size == CharacterTokenizer("abcdefg").size


@pytest.mark.parametrize(
    "name", ["texts.jsonl", "tokenizer/vocabulary.json", "tokenizer/tokenizer.json"]
)
def test_files_that_changed_are_refused(name: str, tmp_path: Path) -> None:
    folder = begun(tmp_path / "run")
    path = folder.inside / name
    path.write_text(path.read_text().replace("a", "b", 1))
    with pytest.raises(DamagedError, match=r"its checksum is not the one in run.json"):
        folder.checked(name)
    path.unlink()
    with pytest.raises(CheckpointError, match="cannot be read"):
        folder.checked(name)
    with pytest.raises(CheckpointError, match=r"does not list ../../secret"):
        folder.checked("../../secret")


def test_another_file_beside_the_tokenizer_is_refused(tmp_path: Path) -> None:
    folder = begun(tmp_path / "run")
    (folder.inside / "tokenizer" / "tokenizer.model").write_text("{}")
    with pytest.raises(DamagedError, match=r"does not hold the files that run.json lists"):
        folder.tokenizer()


def test_settings_are_amended(tmp_path: Path) -> None:
    folder = begun(tmp_path / "run")
    folder.amend({"steps": 5})
    assert folder.record().plan.settings == {"steps": 5}


def test_what_a_killed_process_left_is_swept(tmp_path: Path) -> None:
    folder = begun(tmp_path / "run")
    (folder.inside / ".step-4.part").write_text("half")
    (folder.inside / ".model.12.part").mkdir()
    folder.sweep()
    assert not list(folder.inside.glob(".*"))


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("clearhead.training.run_folder.record.write_json", full)
    with pytest.raises(CheckpointError, match=r"cannot write into .*No space left on device"):
        begun(tmp_path / "run")


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(CheckpointError, match="cannot write into"),
        RunFolder(tmp_path / "file").locked(),
    ):
        pass
