"""clearhead chat, piped: every line is a message or a command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from clearhead.cli.chat import command
from clearhead.generation.session import Session


def chat(folder: Path, *lines: str, options: tuple[str, ...] = ()) -> Result:
    arguments = ["-m", str(folder), "--no-engine", "-n", "6", "--temperature", "0", *options]
    return CliRunner().invoke(command, arguments, input="\n".join([*lines, ""]))


def test_history_template_and_save(decoder_folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "talk.json"
    done = chat(decoder_folder, "the door", "", "their books", f"/save {path}", "/exit", "not read")
    assert done.exit_code == 0
    talk = json.loads(path.read_text())
    assert [message["role"] for message in talk] == ["user", "assistant"] * 2
    assert talk[2]["content"] == "their books"
    assert talk[1]["content"] + "\n" + talk[3]["content"] + "\n" == done.stdout
    assert f"4 messages are in {path}" in done.stderr
    assert "the answer reached --max-tokens" in done.stderr


def test_reset_forgets(decoder_folder: Path, tmp_path: Path) -> None:
    first, later = tmp_path / "a.json", tmp_path / "b.json"
    lines = ("the door", f"/save {first}", "/reset", "the door", f"/save {later}")
    done = chat(decoder_folder, *lines, options=("--system", "be kind"))
    assert done.exit_code == 0  # the end of the input ends the conversation
    assert first.read_text() == later.read_text()
    assert json.loads(first.read_text())[0] == {"role": "system", "content": "be kind"}


def test_only_what_is_new_is_run(
    decoder_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second answer starts from the cache of the first."""
    known: list[int] = []
    plain = Session.runner

    def runner(self: Session, *rest: Any) -> Any:
        made = plain(self, *rest)
        known.append(made.length)
        return made

    monkeypatch.setattr(Session, "runner", runner)
    chat(decoder_folder, "the door", "and the book")
    assert known[0] == 0
    assert known[1] >= 10  # at least the template's first message


def test_commands_that_go_wrong_do_not_end_it(decoder_folder: Path, tmp_path: Path) -> None:
    done = chat(decoder_folder, "/bogus", "/save", f"/save {tmp_path}/no/such/file", "the")
    assert done.exit_code == 0
    assert "/bogus is not a command: /reset starts a new conversation" in done.stderr
    assert "/save wants the name of a file" in done.stderr
    assert "cannot be written: No such file or directory" in done.stderr
    assert done.stdout.strip() != ""


def test_models_that_cannot_chat(translator_folder: Path, decoder_folder: Path) -> None:
    assert "no chat template" in str(chat(translator_folder, "the").exception)
    too_long = chat(decoder_folder, "the " * 300)
    assert "this model's context holds 211" in str(too_long.exception)
