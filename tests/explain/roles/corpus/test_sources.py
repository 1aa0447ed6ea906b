from __future__ import annotations

from pathlib import Path

import pytest

from clearhead.errors import InputError
from clearhead.explain.roles.corpus.recognisers import plain_sentence
from clearhead.explain.roles.corpus.sentence import Sentence
from clearhead.explain.roles.corpus.sources import corpus_of


def test_a_corpus_is_a_path_a_text_or_sentences(tmp_path: Path) -> None:
    path = tmp_path / "some.txt"
    path.write_text("One sentence. Another one.\n")
    assert [one.text for one in corpus_of(path)] == ["One sentence.", "Another one."]
    assert [one.text for one in corpus_of("A text. Of two.")] == ["A text.", "Of two."]
    given: list[str | Sentence] = [plain_sentence("Ready made."), "A plain text"]
    assert [one.text for one in corpus_of(given)] == ["Ready made.", "A plain text"]
    assert corpus_of(given).again and not corpus_of(iter(given)).again
    with pytest.raises(InputError, match=r"there is no file 'missing\.conllu'"):
        corpus_of("missing.conllu")
    with pytest.raises(InputError, match="is a folder"):
        corpus_of(tmp_path)
    with pytest.raises(InputError, match="a corpus gives texts or sentences; int came"):
        list(corpus_of(number for number in (3,)))  # type: ignore[misc]
