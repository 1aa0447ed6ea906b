"""Generated tokens, a line each."""

from __future__ import annotations

import json
import math
from collections.abc import Generator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import clearhead as ch
from clearhead.cli.generate import command
from clearhead.cli.output.token_lines import show_tokens, token_line
from clearhead.generation.event import Alternative, Event


def generate(*arguments: str, engine: str = "--no-engine") -> Result:
    return CliRunner().invoke(command, [*arguments, engine])


@pytest.mark.parametrize("engine", ["--engine", "--no-engine"])
def test_each_token_has_a_line_with_its_probability(decoder_folder: Path, engine: str) -> None:
    options = ("the", "-m", str(decoder_folder), "-n", "5", "--seed", "1")
    shown = generate(*options, "--show", "--alternatives", "3", engine=engine).stdout.splitlines()
    told = generate(*options, "--json", "--alternatives", "3", engine=engine).stdout.splitlines()
    events = [json.loads(line) for line in told]
    tokens = [event for event in events if event["token"] is not None]
    for line, event in zip(shown, tokens, strict=False):
        assert f"{event['probability']:.4f}" in line and len(line) <= 80
        others = [one for one in event["alternatives"] if one["token"] != event["token"]]
        assert f" {others[0]['probability']:.3f}" in line
    bits = sum(-math.log2(event["probability"]) for event in tokens) / len(tokens)
    end = f"── max-tokens after {len(tokens)} tokens, {bits:.2f} bits a token ──"
    assert shown[len(tokens)] == end
    text = "".join(event["text"] for event in events)
    assert "\n".join(shown[len(tokens) + 1 :]) == text.removesuffix("\n")


def test_several_samples_are_numbered_and_end_on_their_own(decoder_folder: Path) -> None:
    options = ("-m", str(decoder_folder), "-n", "3", "--samples", "2", "--seed", "1")
    lines = generate("the", *options, "--show").stdout.splitlines()
    assert [line[:2] for line in lines[:5]] == ["#0", "#1"] * 2 + ["#0"]
    ends = [line for line in lines if line.startswith("── sample")]
    assert [line.split(":")[0] for line in ends] == ["── sample 0", "── sample 1"]


def test_an_encoder_decoder_shows_what_it_writes() -> None:
    lines = generate("3rd of March 2021", "-m", "dates", "--show").stdout.splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["2", "0", "2", "1"]
    assert lines[-2].startswith("── stop-token after 11 tokens") and lines[-1] == "2021-03-03"


def test_options_that_do_not_go_together(decoder_folder: Path) -> None:
    both = generate("the", "-m", str(decoder_folder), "--show", "--json")
    assert both.exit_code == 2 and "give one of them" in both.stderr
    alone = generate("the", "-m", str(decoder_folder), "--alternatives", "3")
    assert alone.exit_code == 2 and "--show or --json" in alone.stderr


def test_a_line_fits_and_commands_no_terminal() -> None:
    dates = ch.load("dates")
    hostile = Alternative(5, "\x1b[2Jx" * 9, 0.25)
    event = Event("", 4, 0.5, (Alternative(4, "4", 0.5), hostile, Alternative(6, "six", 0.125)))
    line = token_line(event, dates, 80, numbered=True)
    assert line.cell_len <= 80 and "\x1b" not in line.plain
    assert " 0.5000 █████" in line.plain and "six 0.125" in line.plain
    assert "six" not in token_line(event, dates, 60, numbered=True).plain  # whole, or not at all
    assert "1e-07" in token_line(Event("", 4, 1e-7), dates, 80, numbered=False).plain


def test_an_interrupted_text_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    def events() -> Generator[Event, None, None]:
        yield Event("20", 4, 0.0)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        show_tokens(events(), ch.load("dates"), 1)
    printed = capsys.readouterr().out
    assert "── interrupted after 1 tokens, 1074.00 bits a token ──\n20\n" in printed
