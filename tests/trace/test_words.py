"""Subwords merged to words."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from clearhead.errors import InputError
from clearhead.text.token import Token
from clearhead.trace.passage import Passage
from clearhead.trace.seen import Seen
from clearhead.trace.words import merge_columns, merge_rows, words_of
from tests.shared.synthetic import Options, passage, synthetic


def word_pieces(text: str, *spans: tuple[int, int]) -> Passage:
    """WordPiece tokens: no leading spaces, ``##`` on continuations, specials around."""
    tokens = [Token(0, "[CLS]", 0, 0, special=True)]
    for start, end in spans:
        inside = start > 0 and text[start - 1].isalnum() and text[start].isalnum()
        tokens.append(Token(1, ("##" if inside else "") + text[start:end], start, end))
    tokens.append(Token(2, "[SEP]", len(text), len(text), special=True))
    return Passage(text, tuple(tokens))


def shown(given_passage: Passage) -> list[tuple[str, list[int]]]:
    return [(word.text, list(word.positions)) for word in words_of(given_passage)]


def test_byte_pairs_with_leading_spaces() -> None:
    pieces = "Un|belie|vable| lions|,| don|'t|!|\n\n|They| ran| (|fast|)."
    assert shown(passage(pieces)) == [
        ("Unbelievable", [0, 1, 2]), ("lions", [3]), (",", [4]), ("don't", [5, 6]), ("!", [7]),
        ("\n\n", [8]), ("They", [9]), ("ran", [10]), ("(", [11]), ("fast", [12]), (").", [13]),
    ]  # fmt: skip


def test_word_pieces() -> None:
    text = "unhappily, well-known"
    spans = ((0, 2), (2, 7), (7, 9), (9, 10), (11, 15), (15, 16), (16, 21))
    assert shown(word_pieces(text, *spans)) == [
        ("[CLS]", [0]), ("unhappily", [1, 2, 3]), (",", [4]), ("well", [5]), ("-", [6]),
        ("known", [7]), ("[SEP]", [8]),
    ]  # fmt: skip


def test_bytes_of_one_character_are_one_word() -> None:
    """Byte-level tokens carry the span of the whole character that they are a part of."""
    text = "x 🦁ä"
    spans = ((0, 1), (1, 3), (2, 3), (2, 3), (3, 4), (3, 4))
    tokens = tuple(Token(i, "?", start, end) for i, (start, end) in enumerate(spans))
    assert shown(Passage(text, tokens)) == [("x", [0]), ("🦁", [1, 2, 3]), ("ä", [4, 5])]


@given(st.text(alphabet="ab1 .'-\n\té🦁", max_size=30), st.lists(st.integers(0, 30), max_size=12))
def test_every_token_belongs_to_one_word(text: str, cuts: list[int]) -> None:
    edges = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    pieces = [text[start:end] for start, end in pairwise(edges)]
    words = words_of(passage(pieces)) if pieces else []
    assert [place for word in words for place in word.positions] == list(range(len(pieces)))
    assert all(word.text == text[word.start : word.end] for word in words)


def test_into_a_word_is_summed_and_out_of_it_averaged() -> None:
    made = synthetic(Options(queries=5, keys=5))
    seen = Seen([made.record], passage("un|do| it|,| it"))
    merged = seen["L0H0"].words()
    assert [word.text for word in merged.rows] == ["undo", "it", ",", "it"]
    weights = made.weights[0, 0]
    summed = torch.stack([weights[:, 0] + weights[:, 1], *weights.T[2:]], dim=1)
    wanted = torch.stack([(summed[0] + summed[1]) / 2, *summed[2:]])
    torch.testing.assert_close(merged.weights.double(), wanted, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(merged.weights.sum(-1), torch.ones(4))
    assert seen["L0"].words().weights.shape == (1, 4, 4)


def test_long_texts_are_merged_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    from clearhead.trace import head_view

    made = synthetic(Options(queries=12, keys=12, kv_heads=2))
    tokens = passage("ab|cd| e|f|g|h| i| j|k|l|m|.")
    wanted = Seen([made.record], tokens)["L0"].words()
    monkeypatch.setattr(head_view, "BLOCK_ROWS", 3)
    found = Seen([made.record], tokens)["L0"].words()
    assert found.rows == wanted.rows and len(found.rows) == 5
    torch.testing.assert_close(found.weights, wanted.weights)


def test_words_must_cover_the_weights() -> None:
    words = words_of(passage("a|b"))
    for merge in (merge_columns, merge_rows):
        with pytest.raises(InputError, match="the words cover 2 tokens, but the weights have 3"):
            merge(torch.ones(3, 3), words)
