from __future__ import annotations

from clearhead.explain.roles.corpus.plain_text import sentences_in


def test_plain_text_is_cut_into_sentences() -> None:
    lines = ["Dr. Novak left. He took", "the bus! (It was late.) Then", "", "A new paragraph"]
    assert list(sentences_in(lines)) == [
        "Dr. Novak left.", "He took the bus!", "(It was late.)", "Then", "A new paragraph",
    ]  # fmt: skip
