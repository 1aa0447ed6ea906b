from __future__ import annotations

import pytest

from clearhead.errors import InputError
from clearhead.explain.roles.corpus.coreference_file import coreference_sentences


def test_coreference_table() -> None:
    text = "The kids left, so they ran and they hid."
    lines = [f"{text}\t18:22\t4:8", f"{text}\t31:35\t4:8", "# a remark"]
    (sentence,) = coreference_sentences(lines)
    assert sentence.coreference == (((18, 22), (4, 8)), ((31, 35), (4, 8)))
    with pytest.raises(InputError, match=r"line 1: text, pronoun and antecedent .* 1 column came"):
        list(coreference_sentences([text]))
    with pytest.raises(InputError, match="99:100 does not lie in a text of 40 characters"):
        list(coreference_sentences([f"{text}\t99:100\t4:8"]))
    with pytest.raises(InputError, match=r"start:end in characters.*'they' came"):
        list(coreference_sentences([f"{text}\tthey\tkids"]))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "a b\t" + "9" * 5000 + ":1\t0:1",
            "a span is start:end in characters, such as 4:8; '9{39}…'",
        ),
        ("a b\t00:1\t0:1", "a span is start:end"),
        ("a b\t0:1\t²:3", "a span is start:end"),
        ("x" * 10_001 + "\t0:1\t2:3", "line 1: a text of 10,001 characters; at most 10,000 go"),
    ],
)
def test_broken_lines(line: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        list(coreference_sentences([line]))
