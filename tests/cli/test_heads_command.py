"""clearhead heads: a table, files, errors without a traceback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from clearhead.cli.heads import command
from clearhead.errors import ClearheadError
from clearhead.explain.roles.built_in_text import made_sentences

SENTENCES = "the students opened their books and their minds.\n\n" * 3


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("download") is None:
        monkeypatch.setenv("CLEARHEAD_HOME", str(tmp_path / "home"))


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(SENTENCES)
    return path


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(command, [str(one) for one in arguments])


def test_a_random_model_has_no_roles(decoder_folder: Path, corpus: Path) -> None:
    result = run(corpus, "--model", decoder_folder)
    assert result.exit_code == 0, result.output
    assert "no role found" in " ".join(result.output.split()) and "Try next:" in result.output
    assert "Never occurs:" in result.output


def test_files_instead_of_the_table(decoder_folder: Path, corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "heads.json"
    result = run(corpus, "--model", decoder_folder, "--json", out, "--words", "their,books")
    assert result.exit_code == 0, result.output
    told = json.loads(out.read_text())
    assert len(told["heads"]) == 8 and told["totals"]["sentences"] == 3
    names = {report["name"]: report["verdict"] for report in told["properties"]}
    assert names["words: their, books"] == "too few cases"


def test_one_head(decoder_folder: Path, corpus: Path) -> None:
    result = run(corpus, "--model", decoder_folder, "--head", "L1H3", "-p", "previous token")
    assert result.exit_code == 0 and "L1H3: no role found" in result.output


def test_what_is_wrong_is_said(decoder_folder: Path, corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(ClearheadError, match=r"there is no file 'missing\.conllu'"):
        raise_from(run("missing.conllu", "--model", decoder_folder))
    with pytest.raises(ClearheadError, match="no built-in property 'verbs'"):
        raise_from(run(corpus, "--model", decoder_folder, "-p", "verbs"))
    with pytest.raises(ClearheadError, match="layers are numbers between commas"):
        raise_from(run(corpus, "--model", decoder_folder, "--layers", "a,b"))
    broken = tmp_path / "broken.conllu"
    broken.write_text("1\tword\n")
    with pytest.raises(ClearheadError, match=r"broken\.conllu, line 1: 10 columns"):
        raise_from(run(broken, "--model", decoder_folder))


def raise_from(result: Result) -> None:
    assert result.exception is not None
    raise result.exception


@pytest.mark.download
def test_minilm_has_a_previous_token_head(corpus: Path) -> None:
    corpus.write_text("\n\n".join(sentence.text for sentence in made_sentences(29)))
    wanted = ("--layers", "0,1", "-p", "previous token", "--switch-off", "1", "--fresh")
    result = run(corpus, "--model", "minilm", *wanted, "--csv", "-")
    assert result.exit_code == 0, result.output
    assert "L0H2,previous token,position" in result.output
