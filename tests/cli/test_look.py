"""The commands that show attention, run on tiny models."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from clearhead.cli.diff import command as diff
from clearhead.cli.look import command as look
from clearhead.cli.map import command as map_
from clearhead.cli.steps import command as steps
from clearhead.errors import InputError, StoreError

TEXT = "the students opened their books"


def run(command: object, *args: object, good: bool = True) -> Result:
    result = CliRunner().invoke(command, [str(arg) for arg in args])  # type: ignore[arg-type]
    if good:
        assert result.exit_code == 0, result.output + str(result.exception)
    return result


def test_look_shows_a_text_and_says_what_next(decoder_folder: Path) -> None:
    shown = run(look, TEXT, "--model", decoder_folder, "--word", "their", "--head", "L1H2").output
    assert "“their” looks most at" in shown and "in L1H2 (layer 1, head 2)" in shown
    assert "Try next:" in shown and "--head L1H2 --word their" in shown
    assert "\x1b[" not in shown  # no colours into pipes


def test_look_reads_files_standard_input_and_traces(decoder_folder: Path, tmp_path: Path) -> None:
    import clearhead as ch
    from clearhead.explain.make_look import make_look

    path = tmp_path / "text.txt"
    path.write_text(TEXT)
    model = ("--model", str(decoder_folder))
    once = run(look, path, *model, "--head", "L0H1").output
    assert "in L0H1 (layer 0, head 1)" in once
    piped = CliRunner().invoke(look, ["-", *model, "--head", "L0H1"], input=TEXT)
    assert piped.output.split("Try next")[0] == once.split("Try next")[0]
    trace = make_look(ch.load(decoder_folder), TEXT).seen.save(tmp_path / "run.trace")
    assert "Proof: exact" in run(look, trace).output
    assert "L0H1: where" in run(steps, trace, "--head", "L0H1").output


def test_look_writes_files(decoder_folder: Path, tmp_path: Path) -> None:
    outs = {name: tmp_path / f"out.{name}" for name in ("html", "svg", "png", "json", "csv")}
    flags = [part for name, path in outs.items() for part in (f"--{name}", path)]
    shown = run(look, TEXT, "--model", decoder_folder, *flags).output
    for path in outs.values():
        assert f"{path} is written" in shown and path.stat().st_size > 100
    assert "Try next" not in shown
    printed = run(look, TEXT, "--model", decoder_folder, "--json", "-").output
    assert json.loads(printed) == json.loads(outs["json"].read_text())


def test_look_generates_and_takes_aids(decoder_folder: Path) -> None:
    shown = run(
        look, TEXT, "-m", decoder_folder, "--generate", 3, "--tokens", "--hide", "nothing",
        "--colour", "log", "--pool", "mean", "--measure", "value",
    ).output  # fmt: skip
    assert "Each written token" in shown
    for note in ("Colours are logarithmic.", "Numbers are weight·‖v‖"):
        assert note in " ".join(shown.split())


def test_look_at_a_translator(translator_folder: Path) -> None:
    shown = run(look, "their books", "-m", translator_folder, "--source", "the door opened").output
    assert "read     the door opened" in shown and "written  their books" in shown


def test_wrong_words_and_heads_are_told(decoder_folder: Path) -> None:
    model = ("--model", decoder_folder)
    for args, message in (
        ((TEXT, "--word", "zebra"), "no word 'zebra'"),
        ((TEXT, "--head", "L9H9"), "2 layers of 4 heads"),
        ((TEXT, "--head", "nonsense"), "is no name of a head"),
        ((" ",), "the text is empty"),
    ):
        result = run(look, *args, *model, good=False)
        assert isinstance(result.exception, InputError)
        assert message in str(result.exception)


@pytest.mark.parametrize("command", [look, steps, map_, diff])
def test_what_is_given_and_cannot_be_read_is_told(
    command: object, decoder_folder: Path, tmp_path: Path
) -> None:
    binary = tmp_path / "picture.png"
    binary.write_bytes(b"\x89PNG\r\n\x1a\n\x00\xff")
    more = ("--other-head", "L0H1") if command is diff else ()
    for given, message in (
        (binary, "picture.png is not UTF-8 text (byte 0)"),
        (tmp_path / "notes.txt", "notes.txt does not exist; wanted: a text, a text file"),
        (f"{tmp_path}/", "is a folder; wanted: a text, a text file"),
        ("", "the text is empty"),
        ("the " * 230, "tokens, and this model's context holds 211"),
    ):
        result = run(command, given, "--model", decoder_folder, *more, good=False)
        assert isinstance(result.exception, InputError)
        assert message in str(result.exception)
        assert "--slide" not in str(result.exception.hint)


def test_words_heads_and_files_that_cannot_be_are_told(
    decoder_folder: Path, tmp_path: Path
) -> None:
    model = ("--model", decoder_folder)
    twice = "the students opened the books"
    for command, args, message in (
        (look, (twice, "--word", "the"), "'the' occurs 2 times, as words 0, 3"),
        (steps, (twice, "--word", "the"), "'the' occurs 2 times, as words 0, 3"),
        (steps, (TEXT, "--word", "zebra"), "no word 'zebra'"),
        (steps, (TEXT, "--head", "L1"), "a step table is of one head"),
        (map_, (TEXT, "--head", "L9H9"), "2 layers of 4 heads"),
        (diff, (TEXT, TEXT, "--head", "L9H9"), "2 layers of 4 heads"),
        (look, (TEXT, "--html", tmp_path / "none" / "a.html"), "a.html: there is no folder"),
        (map_, (TEXT, "--png", tmp_path), f"{tmp_path} is a folder"),
    ):
        result = run(command, *args, *model, good=False)
        assert isinstance(result.exception, InputError), result.output + repr(result.exception)
        assert message in str(result.exception)


def test_offline_the_built_in_model_is_shown(
    monkeypatch: pytest.MonkeyPatch, translator_folder: Path
) -> None:
    import clearhead as ch

    def offline(name: str) -> object:
        if name == "smollm2":
            raise StoreError("smollm2 is not on this machine and cannot be fetched.")
        assert name == "dates"
        return ch.load(translator_folder)

    monkeypatch.setattr("clearhead.cli.looking_options.load_model", offline)
    monkeypatch.setattr("clearhead.explain.make_look.TRANSLATED", 7)
    shown = run(look).output
    assert "3rd of March 2021" in shown
    assert "models pull smollm2" in shown
    with pytest.raises(StoreError):
        raise run(look, "a text of my own", good=False).exception  # type: ignore[misc]


def test_a_new_user_without_a_network_sees_the_built_in_model(tmp_path: Path) -> None:
    """The real thing: an empty cache, and a pip that finds no package anywhere."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    env = ours | {
        "CLEARHEAD_HOME": str(tmp_path), "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull,
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "clearhead"], capture_output=True, text=True, timeout=120, env=env
    )
    assert done.returncode == 0, done.stderr
    assert "read     3rd of March 2021" in done.stdout
    assert "written  2021-03-03" in done.stdout
    assert "smollm2 is not on this machine and could not be fetched" in done.stdout
    assert "models pull smollm2" in done.stdout
    assert "Traceback" not in done.stderr


def test_steps_of_examples_and_of_a_head(decoder_folder: Path, tmp_path: Path) -> None:
    assert "q of “query” = [2 0 −1]" in run(steps).output
    assert run(steps, "batch").output.count("q of “query” = ") == 3
    assert "Try next:" in run(steps, "action").output
    out = run(steps, TEXT, "-m", decoder_folder, "--head", "L1H2", "--word", "their").output
    assert "L1H2: where “their” looks" in out and "give Z" in out
    path = tmp_path / "steps.csv"
    run(steps, TEXT, "-m", decoder_folder, "--csv", path)
    assert path.read_text().startswith("word,score")


def test_diff_of_texts_heads_and_models(decoder_folder: Path) -> None:
    model = ("--model", decoder_folder)
    other = TEXT.replace("books", "door")
    assert "books/door" in run(diff, TEXT, other, *model).output
    heads = run(diff, TEXT, *model, "--head", "L0H1", "--other-head", "L1H1").output
    assert "before  L0H1" in heads
    assert (
        "Weights that changed most"
        in run(diff, TEXT, *model, "--other-model", decoder_folder).output
    )
    assert run(diff, TEXT, *model, good=False).exit_code == 2


def test_map_of_a_long_text(decoder_folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    path.write_text(TEXT * 6)
    model = ("--model", decoder_folder, "--head", "L1H0", "--size", 31)
    assert "A cell holds up to" in run(map_, path, *model).output
    out = tmp_path / "map.png"
    run(map_, path, *model, "--png", out)
    assert out.read_bytes().startswith(b"\x89PNG")


@pytest.mark.download
def test_the_main_job_shows_who_they_are() -> None:
    shown = run(look).output
    assert "“they” looks most at “kids” (0.60) in L16H5 (layer 16, head 5)" in shown
    assert "Proof: exact: 30 layers" in shown


def test_look_shows_predictions_and_the_lens(decoder_folder: Path, tmp_path: Path) -> None:
    model = ("--model", decoder_folder)
    every = run(look, TEXT, *model, "--predictions").output
    assert "What the model says next: " in every and "likeliest others" in every
    assert "--lens   # what the model says next" in every
    assert max(map(len, every.split("Try next")[0].splitlines())) <= 80
    one = run(look, TEXT, *model, "--predictions", "--word", "their", "--top", "3").output
    assert "What comes after “their”" in one
    assert len(one.split("Try next")[0].splitlines()) == 1 + 3 + 2
    lens = run(look, TEXT, *model, "--lens").output
    assert "after each layer" in lens and "    L1 " in lens
    out = tmp_path / "said.csv"
    run(look, TEXT, *model, "--predictions", "--csv", out)
    assert out.read_text().startswith("position,after,token,")
    page = tmp_path / "page.html"
    run(look, TEXT, *model, "--lens", "--html", page)
    assert 'data-block="predictions"' in page.read_text()  # the whole look
    both = run(look, TEXT, *model, "--lens", "--predictions", good=False)
    assert both.exit_code == 2 and "give one of them" in both.output
    none = run(look, TEXT, *model, "--predictions", "--top", "0", good=False)
    assert isinstance(none.exception, InputError)
