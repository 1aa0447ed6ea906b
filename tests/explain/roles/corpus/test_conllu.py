from __future__ import annotations

from pathlib import Path

import pytest

from clearhead.errors import InputError
from clearhead.explain.roles.corpus.conllu import conllu_sentences, read_conllu
from tests.shared.role_models import DONT, conllu_row


def test_multiword_tokens_share_their_surface_and_empty_nodes_are_left_out() -> None:
    (sentence,) = conllu_sentences(DONT)
    assert sentence.text == "They don't sleep."
    assert [word.text for word in sentence.words] == ["They", "do", "n't", "sleep", "."]
    assert [(word.start, word.end) for word in sentence.words] == [
        (0, 4), (5, 10), (5, 10), (11, 16), (16, 17),
    ]  # fmt: skip
    assert [word.head for word in sentence.words] == [3, 3, 3, None, 3]


def test_text_is_put_together_where_it_is_missing_or_another() -> None:
    (spelled,) = conllu_sentences(DONT[1:])
    (other,) = conllu_sentences(["# text = Something else.", *DONT[1:]])
    assert spelled.text == other.text == "They don't sleep."


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["1\tThey\tthey"], "line 1: 10 columns between tabs are wanted; 3 came"),
        ([conllu_row("2", "They")], "word 1 should come; '2' came"),
        ([conllu_row("1", "They", "_", "_", "_", "_", "7", "x"), ""], "the head '7' is no word"),
        ([conllu_row("1", "They", "_", "_", "_", "_", "-1", "x"), ""], "the head '-1' is no word"),
        ([conllu_row("1-x", "They")], "'1-x' is no range of words"),
        ([conllu_row("1", "They", "_", "_", "_", "_", "00", "x"), ""], "the head '00' is no word"),
        ([conllu_row("1", "They", "_", "_", "_", "_", "9" * 5000), ""], "the head '9{39}…' is no"),
        ([conllu_row("2-3", "They")], "a range of words from 1 on may come; 2-3 came"),
        ([conllu_row("9" * 5000 + "-1", "They")], "'9{39}…' is no range of words"),
        ([conllu_row("1-2", "They"), conllu_row("1-2", "They")], "from 1 on may come; 1-2 came"),
        ([conllu_row("1", "x" * 10_001), ""], "a sentence of 10,001 characters; at most 10,000"),
        ([conllu_row("1-3", "They"), conllu_row("1", "Th"), ""], "ends at word 3, beyond"),
    ],
)
def test_broken_files_are_refused_with_their_line(lines: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        list(conllu_sentences(lines, "dev.conllu"))


def test_a_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "latin.conllu"
    path.write_bytes("# text = café\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"is not UTF-8 \(near line 1"):
        list(read_conllu(path))
