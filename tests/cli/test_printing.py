"""Nothing from outside commands the terminal, whichever command shows it."""

from __future__ import annotations

import ast
import io
import json
import re
import sys
import warnings
from pathlib import Path

import pytest

from clearhead.cli import printing
from clearhead.cli.main import COMMANDS
from tests.cli import hostile_material as material
from tests.cli.hostile_material import HOSTILE, SIGN
from tests.shared.terminals import Seen, commands_a_terminal, on_terminals

CLI = Path(printing.__file__).parent
FORBIDDEN = ("click.echo", "click.secho", "click.echo_via_pager", "print", "Console", "rich.print")
ODD_NAME = "odd\x1b[31;5;99m\u202e.txt"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_message_cannot_command(capsys: pytest.CaptureFixture[str]) -> None:
    printing.say(f"two\nlines\t{HOSTILE}", err=True)
    shown = capsys.readouterr().err
    assert shown.startswith("two\nlines\t␛[31;5;99ma␛]0;b␇�5n␡�c��␈")
    assert not any(map(commands_a_terminal, shown))


def test_output_is_visible_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    write = printing.writer()
    for piece in ("a\x1b", "[31m", "👩", "\u200d🚀\n", "b\u200d"):
        write(piece)
    assert screen.getvalue() == "a␛[31m👩\u200d🚀\nb�"


def test_output_into_a_pipe_is_what_came(capsys: pytest.CaptureFixture[str]) -> None:
    printing.write(HOSTILE)
    assert capsys.readouterr().out == HOSTILE + "\n"


def test_json_shows_what_cannot_be_seen_and_loses_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    data = {"text": HOSTILE + "é\ud800", "n": 3}
    printing.write_json(data)
    shown = capsys.readouterr().out
    assert not any(map(commands_a_terminal, shown)) and "é" in shown
    assert json.loads(shown) == data


def test_tables_and_bars(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.table import Table

    table = Table(f"title {HOSTILE}")
    table.add_row(f"[/no] [link=x]{HOSTILE} :bomb:")
    printing.console().print(table)
    shown = capsys.readouterr().out
    assert not any(map(commands_a_terminal, shown))
    assert "[/no] [link=x]␛" in shown and ":bomb:" in shown


def test_warnings_and_tracebacks(capsys: pytest.CaptureFixture[str]) -> None:
    hook, show = sys.excepthook, warnings.showwarning
    try:
        printing.guard()
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = printing._show_warning
            warnings.warn(HOSTILE, UserWarning, stacklevel=1)
        try:
            raise KeyError(HOSTILE)
        except KeyError:
            sys.excepthook(*sys.exc_info())
    finally:
        sys.excepthook, warnings.showwarning = hook, show
    shown = capsys.readouterr().err
    assert shown.startswith("Warning: ␛") and "KeyError" in shown
    assert not any(map(commands_a_terminal, shown))


@pytest.mark.parametrize("path", sorted(CLI.glob("*.py")), ids=lambda path: str(path.name))
def test_every_command_prints_through_the_gate(path: Path) -> None:
    if path.name == "printing.py":
        return
    for node in ast.walk(ast.parse(path.read_text())):
        name = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        assert name not in FORBIDDEN and not name.startswith(("sys.stdout.w", "sys.stderr.w")), name


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Hostile models, traces and texts in one folder."""
    folder = tmp_path_factory.mktemp("hostile")
    material.decoder(folder / "model")
    material.translator(folder / "translator")
    material.trace(folder / "model", folder / "run.trace")
    material.corpus(folder / "corpus.conllu")
    material.odd_model(folder / "odd-model", folder / "model")
    material.odd_config(folder / "odd-config", folder / "model")
    (folder / "numbers.csv").write_text(f"query,{HOSTILE},1,2\nkey,{HOSTILE},3,4\n")
    (folder / ODD_NAME).write_text(HOSTILE + "the kids left")
    (folder / "text.txt").write_text((HOSTILE + "the kids left\n") * 40)
    return folder


SHOWN = [
    ["look", ODD_NAME, "--model", "model"],
    ["look", "run.trace"],
    ["look", "run.trace", "--tokens", "--hide", "nothing", "--head", "all"],
    ["look", "run.trace", "--csv", "-"],
    ["look", "run.trace", "--json", "-"],
    ["look", "run.trace", "--svg", "-"],
    ["look", "run.trace", "--html", "-"],
    ["look", "the kids", "--model", "model", "--generate", "5"],
    ["look", ODD_NAME, "--model", "model", "--predictions"],
    ["look", ODD_NAME, "--model", "model", "--lens"],
    ["look", "the kids" + HOSTILE, "--model", "model", "--csv", "-"],
    ["steps", "run.trace"],
    ["steps", "--numbers", "numbers.csv"],
    ["learn", "--html", f"learn{HOSTILE}.html"],
    ["map", "run.trace", "--size", "20"],
    ["diff", "the kids" + HOSTILE, "the " + HOSTILE + "left", "--model", "model"],
    ["heads", "corpus.conllu", "--model", "model", "--ablate", "0"],
    ["heads", "corpus.conllu", "--model", "model", "--ablate", "0", "--head", "L0H0"],
    ["generate", "the kids" + HOSTILE, "--model", "model", "-n", "40", "--no-engine"],
    ["generate", "the", "--model", "model", "-n", "20", "--samples", "2", "--no-engine"],
    ["generate", "the", "--model", "model", "-n", "20", "--json", "--no-engine"],
    ["generate", "the", "--model", "model", "-n", "20", "--samples", "2", "--show", "--no-engine"],
    ["translate", HOSTILE, "--model", "translator", "-n", "20", "--no-engine"],
    ["translate", HOSTILE, "--model", "translator", "-n", "20", "--no-engine", "--json"],
    ["why", "the kids" + HOSTILE, "--model", "model"],
    ["diff", "--patch", "the kids" + HOSTILE, "the dogs" + HOSTILE, "--model", "model"],
    ["train", "text.txt", "--steps", "2", "--out", "out" + HOSTILE, "--set", "batch_tokens=64",
     "--tokenizer", "characters"],
]  # fmt: skip
REFUSED = [
    ["chat", "--model", "model", "-n", "9", "--no-engine"],  # characters come without a template
    ["look", "run.trace", "--svg", f"missing{HOSTILE}/x.svg"],
    ["look", "the kids", "--model", "odd-model"],
    ["look", "the kids", "--model", "odd-config"],
    ["look", "run.trace", "--word", HOSTILE],
    ["look", "run.trace", "--head", HOSTILE],
    ["steps", "run.trace", "--head", HOSTILE],
    ["map", "run.trace", "--head", HOSTILE],
    ["diff", "run.trace", f"{HOSTILE}.trace"],
    ["heads", f"{HOSTILE}.conllu", "--model", "model"],
    ["heads", "text.txt", "--model", "model", "-p", HOSTILE],
    ["generate", "the", "--model", HOSTILE],
    ["generate", "--file", HOSTILE],
    ["translate", "the", "--model", f"{HOSTILE}"],
    ["models", "info", HOSTILE],
    ["models", "pull", HOSTILE],
    ["studio", HOSTILE, "--no-open"],
    ["train", HOSTILE, "--out", "other"],
    [f"bogus{HOSTILE}"],
    ["look", f"--bogus{HOSTILE}"],
    ["map", "run.trace", "--size", HOSTILE],
]


def check(seen: Seen) -> None:
    assert SIGN not in seen.output or f"\x1b[{SIGN}" not in seen.output, seen
    assert not seen.commands, (seen.arguments, seen.commands, seen.output[-2000:])
    assert "Traceback" not in seen.output, seen.output


@pytest.mark.slow
def test_no_command_lets_a_sequence_through(folder: Path, tmp_path: Path) -> None:
    typed = "the kids\n/exit\n"
    found = on_terminals(SHOWN, folder, typed, CLEARHEAD_HOME=str(tmp_path), OMP_NUM_THREADS="1")
    for seen in found:
        check(seen)
        assert seen.code == 0, seen
        if "L0H0" in seen.arguments or "--json" in seen.arguments:
            continue  # built-in properties; a text that was sampled need not hold any of them
        assert any(sign in seen.output for sign in ("␛", "␇", "␡", "�", "\\u001b")), seen
    assert {seen.arguments[0] for seen in found} | {"models", "chat", "studio"} == set(COMMANDS)


@pytest.mark.slow
def test_no_error_lets_a_sequence_through(folder: Path, tmp_path: Path) -> None:
    found = on_terminals(REFUSED, folder, CLEARHEAD_HOME=str(tmp_path), PIP_NO_INDEX="1")
    for seen in found:
        check(seen)
        assert seen.code in (1, 2), seen
    colourless = on_terminals(REFUSED[:3], folder, TERM="dumb", NO_COLOR="1")
    for seen in colourless:
        check(seen)
        assert not re.search("\x1b.*m", seen.output)
