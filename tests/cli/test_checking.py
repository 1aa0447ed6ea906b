"""Arguments are refused before a model is loaded or a text is read."""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from clearhead.cli import looking_options
from clearhead.cli.checking import ENDINGS, checked_model, checked_output, did_you_mean
from clearhead.cli.diff import command as diff
from clearhead.cli.heads import command as heads
from clearhead.cli.look import command as look
from clearhead.cli.main import COMMANDS, cli
from clearhead.cli.map import command as long_map
from clearhead.cli.steps import command as steps
from clearhead.cli.why import command as why
from clearhead.errors import ClearheadError, InputError, StoreError

VIEWS: dict[str, Any] = {
    "look": look, "why": why, "steps": steps, "map": long_map, "heads": heads, "diff": diff,
}  # fmt: skip
CONTEXT = click.Context(click.Command("x"))


def option(name: str) -> click.Option:
    return click.Option([f"--{name}"])


@pytest.fixture
def nothing_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading and reading fail the test: everything must be refused before."""

    def fail(*_: Any, **__: Any) -> Any:
        raise AssertionError("it was loaded")

    monkeypatch.setattr(looking_options, "load_model", fail)
    monkeypatch.setattr("clearhead.cli.heads.load_model", fail)


@pytest.mark.usefixtures("nothing_loads")
@pytest.mark.parametrize("name", list(VIEWS))
@pytest.mark.parametrize("kind", list(ENDINGS))
def test_no_command_loads_anything_for_a_file_that_it_cannot_write(
    name: str, kind: str, tmp_path: Path
) -> None:
    texts = ["a text", "another text"] if name == "diff" else [] if name == "heads" else ["a text"]
    (tmp_path / "folder.d").mkdir()
    for path in ("picture.jpg", str(tmp_path / "missing" / f"x.{kind}"), str(tmp_path)):
        found = CliRunner().invoke(VIEWS[name], [*texts, f"--{kind}", path])
        assert isinstance(found.exception, InputError), (found.exception, path)


@pytest.mark.usefixtures("nothing_loads")
@pytest.mark.parametrize("name", list(VIEWS))
def test_no_command_reads_anything_for_a_model_that_does_not_exist(name: str) -> None:
    texts = ["a text", "another text"] if name == "diff" else [] if name == "heads" else ["a text"]
    found = CliRunner().invoke(VIEWS[name], [*texts, "--model", "smolm2"])
    assert isinstance(found.exception, StoreError)
    assert "Did you mean smollm2?" in str(found.exception)


@pytest.mark.usefixtures("nothing_loads")
def test_texts_are_checked_before_models_too() -> None:
    for command, texts in ((why, ["missing.txt"]), (diff, ["a text", "missing.txt"])):
        found = CliRunner().invoke(command, texts)
        assert isinstance(found.exception, InputError) and "does not exist" in str(found.exception)
    found = CliRunner().invoke(diff, ["a text", "--other-model", "minlm"])
    assert "Did you mean minilm?" in str(found.exception)


@pytest.mark.parametrize("name", ["look", "steps", "map", "diff", "why"])
def test_a_missing_file_is_told_before_anything_is_imported(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("looking", "shown", "why.shown"):
        monkeypatch.setitem(sys.modules, f"clearhead.views.{module}", None)  # an import would fail
    texts = ["missing.txt"] * (1 + (name == "diff"))
    found = CliRunner().invoke(VIEWS[name], texts)
    assert isinstance(found.exception, InputError) and "does not exist" in str(found.exception)


def test_endings_say_what_is_written(tmp_path: Path) -> None:
    for kind, endings in ENDINGS.items():
        for ending in endings:
            path = str(tmp_path / f"x{ending}")
            assert checked_output(CONTEXT, option(kind), path) == path
        assert checked_output(CONTEXT, option(kind), "-") == "-"
        assert checked_output(CONTEXT, option(kind), None) is None
    with pytest.raises(InputError, match=r"--svg writes SVG, and out\.jpg ends in \.jpg") as found:
        checked_output(CONTEXT, option("svg"), "out.jpg")
    assert found.value.hint == "--svg out.svg"
    with pytest.raises(InputError) as found:
        checked_output(CONTEXT, option("svg"), "out.png")
    assert found.value.hint == "--png out.png"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="permission denied"):
        checked_output(CONTEXT, option("svg"), str(tmp_path / "x.svg"))


def test_models_by_name_path_or_hub_id(tmp_path: Path) -> None:
    for name in ("smollm2", str(tmp_path), "org/name", None):
        assert checked_model(CONTEXT, option("model"), name) == name
    with pytest.raises(StoreError, match="there is no model or path 'xyz'"):
        checked_model(CONTEXT, option("model"), "xyz")


@pytest.mark.parametrize(
    ("name", "meant"), [("lok", "look"), ("step", "steps"), ("generat", "generate")]
)
def test_unknown_commands(name: str, meant: str) -> None:
    found = CliRunner().invoke(cli, [name])
    assert found.exit_code == 2 and f"Did you mean {meant}?" in found.output
    assert did_you_mean("zzzz", list(COMMANDS)) == ""
    assert "Did you mean why?" in CliRunner().invoke(cli, ["wyh", "a text"]).output


def test_a_misspelt_example_is_asked_about() -> None:
    found = CliRunner().invoke(steps, ["acton"])
    assert isinstance(found.exception, ClearheadError)
    assert "Did you mean action?" in found.exception.message
    assert f"echo acton | {looking_options.program()} steps -" in str(found.exception.hint)


def test_every_help_ends_with_examples() -> None:
    for name in COMMANDS:
        said = CliRunner().invoke(cli, [name, "--help"]).output
        assert f"\n    clearhead {name}" in said.partition("Examples:")[2], name


def suggested(output: str) -> list[list[str]]:
    """As a shell reads them: a quoted text may have several lines."""
    commands = re.split(r"\n  (?=\./run |clearhead )", output.partition("Try next:")[2])
    return [shlex.split(line, comments=True)[1:] for line in commands if line.strip()]


@pytest.mark.parametrize(
    ("given", "stdin"),
    [("open eyes see eyes and the eyes", None), ("-", "the 9 students' eyes #2 eyes"),
     ("-", "their minds\nand their books")],
)  # fmt: skip
def test_suggested_commands_work_when_pasted(
    decoder_folder: Path, given: str, stdin: str | None
) -> None:
    model = ["--model", str(decoder_folder)]
    for name in ("look", "steps", "why"):
        shown = CliRunner().invoke(cli, [name, given, *model], input=stdin)
        assert shown.exit_code == 0, shown.output
        for words in suggested(shown.output):
            if "--html" in words or "--help" in words or "your own text" in words:
                continue
            again = CliRunner().invoke(cli, words)
            assert again.exit_code == 0, (words, again.output, again.exception)


def test_a_long_piped_text_is_not_repeated(decoder_folder: Path) -> None:
    text = "the students opened their books " * 12
    shown = CliRunner().invoke(cli, ["look", "-", "--model", str(decoder_folder)], input=text)
    assert suggested(shown.output) == [["look", "your own text"], ["look", "--help"]]
