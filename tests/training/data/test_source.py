"""What ``train`` takes as texts: paths, texts or pairs, and nothing that could mean two things."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from clearhead.errors import CheckpointError, InputError
from clearhead.training.data.source import Source, from_lines, source_of, to_lines


def test_a_string_alone_is_a_path(tmp_path: Path) -> None:
    assert source_of(None, pairs=False) == Source()
    assert source_of(str(tmp_path), pairs=False) == Source((str(tmp_path),))
    assert source_of(tmp_path, pairs=True) == Source((str(tmp_path),))
    with pytest.raises(InputError, match="no file or folder 'Once upon a time") as error:
        source_of("Once upon a time there was a very long text.", pairs=False)
    assert error.value.hint is not None and "[text]" in error.value.hint


def test_a_list_holds_paths_or_texts(tmp_path: Path) -> None:
    paths = (tmp_path / "a", tmp_path / "b")
    assert source_of(paths, pairs=False).paths == tuple(map(str, paths))
    assert source_of(["one", " ", "two\n"], pairs=False) == Source(content=["one", "two\n"])
    relative = source_of([Path("a")], pairs=False)
    assert relative.paths == (str(Path.cwd() / "a"),)


def test_a_list_of_pairs() -> None:
    wanted = Source(content=[("a", "b"), ("c", "d")])
    assert source_of([(" a", "b\n"), ("c", "d"), ("e", " ")], pairs=True) == wanted


@pytest.mark.parametrize(
    ("given", "pairs", "message"),
    [
        ([], False, "the list of texts is empty"),
        (["", " "], False, "every text is empty"),
        ([("a", " ")], True, "every pair has an empty side"),
        (b"text", False, "a path or a list; got a bytes"),
        ({"text": 1}, False, "a path or a list; got a dict"),
        ((text for text in "ab"), False, "got a generator"),
        ([1], False, "a text is a string; got 1"),
        (["a", Path("b")], False, r"a text is a string; got PosixPath\('b'\)"),
        ([("a", "b")], False, "the texts are tuples"),
        (["a", "b"], True, r"a pair is \(source, target\); got 'a'"),
        ([("a", "b", "c")], True, "a pair is"),
        (["\ud800"], False, "is not valid Unicode"),
    ],
)
def test_what_is_refused(given: Any, pairs: bool, message: str) -> None:
    with pytest.raises(InputError, match=message):
        source_of(given, pairs=pairs)


def test_a_text_that_names_a_file_is_ambiguous(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("book.txt").write_text("a book")
    with pytest.raises(InputError, match=r"'book\.txt' may be a text or the file") as error:
        source_of(["a text", "book.txt"], pairs=False)
    assert error.value.hint is not None and "Path('book.txt')" in error.value.hint


def test_lines_keep_every_character(tmp_path: Path) -> None:
    path, texts = tmp_path / "texts.jsonl", ["a\r\nb\u2028\u0085", "\ufeffé\t\0", "😀"]
    path.write_text(to_lines(texts))
    assert from_lines(path, pairs=False) == texts
    pairs = [("a\tb", "c\n"), ("d", "e")]
    path.write_text(to_lines(pairs))
    assert from_lines(path, pairs=True) == pairs
    path.write_text('"cut of')
    with pytest.raises(CheckpointError, match="is damaged"):
        from_lines(path, pairs=False)
