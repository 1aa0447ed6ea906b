"""clearhead heads: a table, files, errors without a traceback."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from clearhead.checkpoints.store.cache_folder import cache_folder
from clearhead.cli.heads import command
from clearhead.errors import ClearheadError
from clearhead.explain.roles.corpus.built_in_text import made_sentences

SENTENCES = "the students opened their books and their minds.\n\n" * 3


@pytest.fixture(autouse=True)
def home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[None]:
    """A home of its own; with downloaded models the usual one, in which no counts are left."""
    if request.node.get_closest_marker("download") is None:
        monkeypatch.setenv("CLEARHEAD_HOME", str(tmp_path / "home"))
    folder = cache_folder() / "roles"
    before = set(folder.glob("*.counts*"))
    yield
    for path in set(folder.glob("*.counts*")) - before:
        path.unlink()


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
    assert f"heads {corpus} --model {decoder_folder} --head L0H0" in result.output


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


@pytest.mark.parametrize(
    ("name", "content", "wanted"),
    [
        ("empty.txt", b"", r"empty\.txt holds no sentence that could be counted: of 0 that came"),
        ("empty.conllu", b"\n\n", r"empty\.conllu holds no sentence"),
        ("weights.gguf", b"GGUF\x03\xff\xfe\x00", r"weights\.gguf is not UTF-8 \(near line 1\)"),
        ("text.conllu", b"Plain text.\n", r"text\.conllu, line 1: 10 columns .* 1 came"),
        ("far.conllu", b"1\ta\t_\tX\t_\t_\t9\tdep\t_\t_\n", r"line 1: the head '9' is no word of"),
        ("far.tsv", b"They left.\t0:4\t5:99\n", r"line 1: the span 5:99 does not lie in a text of"),
    ],
)
def test_files_that_are_no_corpus(
    decoder_folder: Path, tmp_path: Path, name: str, content: bytes, wanted: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ClearheadError, match=wanted):
        raise_from(run(path, "--model", decoder_folder))


def test_heads_layers_and_models_that_do_not_fit(
    decoder_folder: Path, corpus: Path, tmp_path: Path
) -> None:
    with pytest.raises(ClearheadError, match=r"wanted a text file, but .*text\.txt\.d is a folder"):
        folder = tmp_path / "text.txt.d"
        folder.mkdir()
        raise_from(run(folder, "--model", decoder_folder))
    with pytest.raises(ClearheadError, match=r"a head is written L16H5: .*; 'sixteen' came"):
        raise_from(run(corpus, "--model", decoder_folder, "--head", "sixteen"))
    with pytest.raises(ClearheadError, match=r"has no head L2H0: its heads are L0H0 … L1H3"):
        raise_from(run(corpus, "--model", decoder_folder, "--head", "L2H0"))
    with pytest.raises(ClearheadError, match="at least one letter"):
        raise_from(run(corpus, "--model", decoder_folder, "--words", "a, ,b"))
    bare = tmp_path / "bare"
    shutil.copytree(decoder_folder, bare, ignore=shutil.ignore_patterns("tokenizer*"))
    with pytest.raises(ClearheadError, match="needs the model's tokenizer") as caught:
        raise_from(run(corpus, "--model", bare))
    assert caught.value.hint is not None and "tokenizer.json beside" in caught.value.hint


def test_the_encoder_of_a_translator_is_counted(translator_folder: Path, corpus: Path) -> None:
    result = run(corpus, "--model", translator_folder, "--head", "E0H3", "--ablate", "0")
    assert result.exit_code == 0 and "E0H3: no role found" in result.output
    with pytest.raises(ClearheadError, match=r"has no head L0H3: its heads are E0H0 … E0H3"):
        raise_from(run(corpus, "--model", translator_folder, "--head", "L0H3"))


def test_stopping_says_that_the_counts_are_kept(
    decoder_folder: Path, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("clearhead.explain.roles.roles.added_up", _stop)
        stopped = CliRunner().invoke(command, [str(corpus), "--model", str(decoder_folder)])
    assert "The counts so far are cached: the same command continues" in stopped.output
    (kept,) = (tmp_path / "home" / "roles").glob("*.counts")
    written = kept.stat().st_mtime_ns
    again = run(corpus, "--model", decoder_folder, "--csv", "-")  # shown in another way
    assert again.exit_code == 0 and kept.stat().st_mtime_ns == written
    run(corpus, "--model", decoder_folder, "--fresh")
    assert kept.stat().st_mtime_ns > written


def _stop(_: object) -> None:
    raise KeyboardInterrupt


def raise_from(result: Result) -> None:
    assert result.exception is not None
    raise result.exception


@pytest.mark.download
def test_minilm_has_a_previous_token_head(corpus: Path) -> None:
    corpus.write_text("\n\n".join(sentence.text for sentence in made_sentences(29)))
    wanted = ("--layers", "0,1", "-p", "previous token", "--ablate", "1", "--fresh")
    result = run(corpus, "--model", "minilm", *wanted, "--csv", "-")
    assert result.exit_code == 0, result.output
    assert "L0H2,previous token,position" in result.output
