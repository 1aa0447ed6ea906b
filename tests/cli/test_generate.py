"""clearhead generate, as a user calls it."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from clearhead.cli.generate import command
from clearhead.errors import ClearheadError


def generate(*arguments: str, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(command, [*arguments, "--no-engine"], input=stdin)


def test_the_text_goes_to_standard_output(decoder_folder: Path) -> None:
    done = generate("the door", "-m", str(decoder_folder), "-n", "12", "--seed", "3")
    assert done.exit_code == 0
    assert done.stdout.endswith("\n")
    again = generate("the door", "-m", str(decoder_folder), "-n", "12", "--seed", "3")
    other = generate("the door", "-m", str(decoder_folder), "-n", "12", "--seed", "4")
    assert done.stdout == again.stdout != other.stdout


def test_prompt_from_a_file_or_standard_input(decoder_folder: Path, tmp_path: Path) -> None:
    options = ("-m", str(decoder_folder), "-n", "5", "--temperature", "0")
    wanted = generate("the door", *options).stdout
    path = tmp_path / "prompt.txt"
    path.write_text("the door\n")  # the line break at a file's end is not a part of it
    assert generate("--file", str(path), *options).stdout == wanted
    assert generate("--file", "-", *options, stdin="the door\n").stdout == wanted
    assert generate("-", *options, stdin="the door").stdout == wanted
    assert generate(*options, stdin="the door").stdout == wanted


def test_json_has_one_event_per_line(decoder_folder: Path) -> None:
    options = ("-m", str(decoder_folder), "-n", "4", "--seed", "1", "--alternatives", "2")
    done = generate("the", *options, "--json")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(events) == 5
    assert set(events[0]) == {
        "text", "token", "probability", "alternatives", "row", "sample", "finish"
    }  # fmt: skip
    assert len(events[0]["alternatives"]) == 2
    assert events[-1]["finish"] == "max-tokens"
    plain = generate("the", *options[:-2]).stdout
    assert "".join(event["text"] for event in events) + "\n" == plain


def test_several_samples(decoder_folder: Path) -> None:
    done = generate("the", "-m", str(decoder_folder), "-n", "4", "--samples", "3", "--seed", "1")
    assert [f"── sample {n} ──" in done.stdout for n in range(4)] == [True, True, True, False]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--top-k", "0"], "top_k must be a whole number of 1 or more; got 0"),
        (["--temperature", "-1"], "temperature must be a finite number of 0 or more"),
        (["-n", "0"], "max_tokens must be a whole number"),
        (["--stop", ""], "stop must be a string or several"),
        (["--slide", "--speculate", "-1"], "speculate must be a whole number"),
    ],
)
def test_bad_values(decoder_folder: Path, arguments: list[str], message: str) -> None:
    done = generate("the", "-m", str(decoder_folder), *arguments)
    assert isinstance(done.exception, ClearheadError)
    assert message in done.exception.message


def test_bad_prompts(decoder_folder: Path, tmp_path: Path) -> None:
    model = ("-m", str(decoder_folder))
    too_long = generate("the " * 300, *model)
    assert "this model's context holds 211" in str(too_long.exception)
    assert "cannot be read" in str(generate("-f", str(tmp_path / "none"), *model).exception)
    assert "not UTF-8" in str(generate("-", *model, stdin=b"\xff\xfe").exception)
    both = generate("the", "-f", "-", *model)
    assert both.exit_code == 2
    assert "not both" in both.stderr


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "clearhead", "generate", *arguments],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=heed_ctrl_c,
    )  # fmt: skip


def heed_ctrl_c() -> None:
    """What a shell starts in the background ignores Ctrl-C, and so would all that it starts."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def interrupted(*arguments: str) -> tuple[int, str, str]:
    """Return code, output and errors of a command that gets Ctrl-C after its fifth line."""
    process = start(*arguments)
    assert process.stdout is not None
    first = "".join(process.stdout.readline() for _ in range(5))
    process.send_signal(signal.SIGINT)
    rest, errors = process.communicate(timeout=60)
    return process.returncode, first + rest, errors


def test_ctrl_c_ends_with_what_there_is(endless_folder: Path) -> None:
    options = ("-n", "1000000", "--slide", "--json", "--no-engine")
    code, output, errors = interrupted("the", "-m", str(endless_folder), *options)
    events = [json.loads(line) for line in output.splitlines()]
    assert code == 130
    assert "Traceback" not in errors
    assert events[-1]["finish"] == "interrupted"


def test_errors_without_a_traceback() -> None:
    process = start("the", "-m", "no-such-model")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert errors.startswith("Error: there is no model or path 'no-such-model'")
    assert "Traceback" not in errors


@pytest.mark.download
def test_the_first_example_of_the_readme() -> None:
    process = start("Students opened their", "-n", "5", "--temperature", "0")
    text, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert text.startswith(" eyes")


def test_settings_of_the_models_files(decoder_folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(decoder_folder, tmp_path / "model")
    (folder / "generation_config.json").write_text(
        '{"do_sample": false, "max_new_tokens": 7, "no_repeat_ngram_size": 2, "stop_strings": "?"}'
    )
    options = ("-m", str(decoder_folder), "-n", "7", "--temperature", "0", "--stop", "?")
    wanted = generate("the the the", *options, "--no-repeat-ngram-size", "2").stdout
    assert generate("the the the", "-m", str(folder)).stdout == wanted
    explicit = generate("the the the", "-m", str(folder), "--no-repeat-ngram-size", "0").stdout
    assert explicit == generate("the the the", *options).stdout
    (folder / "generation_config.json").write_text('{"guidance_scale": 2.0}')
    refused = generate("the", "-m", str(folder), "-n", "3")
    assert "asks for guidance_scale=2.0" in str(refused.exception)
    assert generate("the", "-m", str(folder), "-n", "3", "--no-file-settings").exit_code == 0


def test_help_says_where_defaults_come_from() -> None:
    text = " ".join(CliRunner().invoke(command, ["--help"]).stdout.split())
    assert "[default: the model's files, or 128]" in text
    assert "[default: the model's files, or 0.7]" in text
    assert "--no-file-settings" in text and "--min-tokens-to-keep" in text
