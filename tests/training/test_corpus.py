"""Texts and pairs from files, and what is said of files that are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from clearhead.errors import InputError
from clearhead.training.corpus import held_out, python_reference, read_documents
from clearhead.training.text_pairs import held_out_pairs, read_pairs
from clearhead.training.vocabulary import make_tokenizer


def test_files_and_folders(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "two.txt").write_text("zwei\r\nZeilen", encoding="utf-8")
    (tmp_path / "b" / "one.md").write_text("eins", encoding="utf-8")
    (tmp_path / "b" / "picture").write_bytes(b"\x89PNG\0\0")
    (tmp_path / "b" / ".hidden").write_text("x")
    (tmp_path / "a.txt").write_text("\ufeffa", encoding="utf-8")
    read = read_documents([tmp_path / "b", tmp_path / "a.txt"])
    assert read == ["eins", "zwei\nZeilen", "a"]


def test_what_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "latin.txt").write_bytes("ä".encode("latin-1"))
    (tmp_path / "empty.txt").write_text(" \n")
    (tmp_path / "nothing").mkdir()
    for path, wanted in (
        ("latin.txt", r"not UTF-8 text \(byte 0\)"),
        ("empty.txt", "nothing to learn from"),
        ("absent.txt", "cannot be read: No such file"),
        ("nothing", "holds no file of text"),
    ):
        with pytest.raises(InputError, match=wanted):
            read_documents([tmp_path / path])


def test_holding_out() -> None:
    training, validation = held_out(["abcdefghij", "0123456789"], 0.2, seed=3)
    assert (training, validation) == (["abcdefgh", "01234567"], ["ij", "89"])
    many = [f"document {n}" for n in range(40)]
    training, validation = held_out(many, 0.1, seed=3)
    assert sorted(training + validation) == sorted(many)
    assert 3 <= len(validation) <= 6
    with pytest.raises(InputError, match=r"at most 0\.5; got 0\.6"):
        held_out(many, 0.6, seed=3)


def test_the_reference_text_is_there() -> None:
    assert sum(map(len, python_reference())) > 300_000


def test_pairs(tmp_path: Path) -> None:
    table, one, two = tmp_path / "t.tsv", tmp_path / "one", tmp_path / "two"
    table.write_text("a\tb\n\nc\td\n")
    one.write_text("a\nc\n")
    two.write_text("b\nd\n")
    assert read_pairs([table]) == read_pairs([one, two]) == [("a", "b"), ("c", "d")]
    two.write_text("b\n")
    with pytest.raises(InputError, match=r"has 2 lines and .* 1"):
        read_pairs([one, two])
    table.write_text("a b\n")
    with pytest.raises(InputError, match="line 1: a source, a tab and a target"):
        read_pairs([table])
    with pytest.raises(InputError, match="got 3"):
        read_pairs([one, one, one])
    table.write_text("\n")
    with pytest.raises(InputError, match="hold no pairs"):
        read_pairs([table])


def test_a_source_is_learned_or_tried_but_not_both() -> None:
    pairs = [(f"s{n % 10}", f"t{n}") for n in range(50)]
    training, validation = held_out_pairs(pairs, 0.2, seed=3)
    assert {s for s, _ in training} & {s for s, _ in validation} == set()
    assert len(validation) == 10
    with pytest.raises(InputError, match="at least two different sources"):
        held_out_pairs([("a", "b")], 0.1, seed=3)


def test_vocabularies() -> None:
    texts = ["some words and other words"] * 3
    assert make_tokenizer("bpe", texts, size=270).size == 270
    with pytest.raises(InputError, match="a vocabulary of 5000 is too large for these texts"):
        make_tokenizer("bpe", texts, size=5000)
    with pytest.raises(InputError, match="bpe, characters or a folder"):
        make_tokenizer("morse", texts)
    with pytest.raises(InputError, match="a size is for bpe"):
        make_tokenizer("characters", texts, size=20)
