"""clearhead translate: one line out for each line in."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

import clearhead as ch
from clearhead.cli.translate import command
from clearhead.generation.beam_search import beam_search


def translate(folder: Path, *arguments: str, stdin: str | bytes | None = None) -> Result:
    options = ["-m", str(folder), "--no-engine", "-n", "9"]
    return CliRunner().invoke(command, [*options, *arguments], input=stdin)


def test_texts_and_lines(translator_folder: Path) -> None:
    loaded = ch.load(translator_folder)
    texts = ["the door", "their books"]
    wanted = [beam_search(loaded, text, max_tokens=9, engine=False)[0].text for text in texts]
    assert wanted[0] != wanted[1]
    done = translate(translator_folder, *texts)
    assert done.exit_code == 0
    assert done.stdout == f"{wanted[0]}\n{wanted[1]}\n"
    piped = translate(translator_folder, stdin="the door\n\ntheir books\n")
    assert piped.stdout == f"{wanted[0]}\n\n{wanted[1]}\n"  # lines stay side by side


def test_several_best_as_json(translator_folder: Path) -> None:
    done = translate(translator_folder, "the", "--beams", "4", "--best", "3", "--json")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == 3
    assert found[0]["source"] == "the"
    assert [text["score"] for text in found] == sorted((t["score"] for t in found), reverse=True)


def test_bad_input(translator_folder: Path, decoder_folder: Path) -> None:
    assert "wants an encoder-decoder model" in str(translate(decoder_folder, "the").exception)
    best = translate(translator_folder, "the", "--beams", "2", "--best", "3")
    assert "best must be at most beams" in str(best.exception)
    assert "not UTF-8" in str(translate(translator_folder, stdin=b"\xff\n").exception)


def test_every_option_is_an_argument() -> None:
    """Options that are not given stay None, so that the model's files can say them."""
    given = command.make_context("x", ["-m", "dates", "text"]).params
    arguments = inspect.signature(beam_search).parameters
    assert set(arguments) - {"loaded", "prompt"} <= set(given)
    for name, argument in arguments.items():
        if name not in ("loaded", "prompt"):
            assert given[name] == argument.default, name


def test_the_end_of_the_search(translator_folder: Path) -> None:
    loaded = ch.load(translator_folder)
    words: dict[str, Any] = {"yes": True, "no": False, "never": "never"}
    for word, when in words.items():
        options: dict[str, Any] = {"max_tokens": 9, "engine": False, "no_repeat_ngram_size": 2}
        wanted = beam_search(loaded, "the", early_stopping=when, **options)[0].text
        done = translate(
            translator_folder, "the", "--early-stopping", word, "--no-repeat-ngram-size", "2"
        )
        assert done.stdout == f"{wanted}\n"


def test_dates_says_when_a_text_is_no_date() -> None:
    found = CliRunner().invoke(command, ["-m", "dates", "--no-engine", "3rd of March 2021"])
    assert found.stdout == "2021-03-03\n" and "Warning" not in found.stderr
    found = CliRunner().invoke(command, ["-m", "dates", "--no-engine", "hello world"])
    assert "dates is not sure of this" in found.stderr and "3rd of March 2021" in found.stderr
