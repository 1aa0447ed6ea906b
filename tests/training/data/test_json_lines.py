"""JSON Lines: a document in each line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clearhead.errors import InputError
from clearhead.training.data.corpus import read_documents
from clearhead.training.data.json_lines import documents, lines


def test_lines_over_blocks() -> None:
    text = "one\n\ntwo\u2028still two\nthree"
    for size in (1, 2, 5, 100):
        blocks = [text[at : at + size] for at in range(0, len(text), size)]
        assert list(lines(blocks)) == ["one", "", "two\u2028still two", "three"]


def test_strings_and_fields() -> None:
    text = '"plain"\n{"text": "a\\nb\\r\\nc", "n": 1}\n\n{"text": null}\n'
    assert list(documents([text], "x", None)) == ["plain", "a\nb\nc", ""]
    assert list(documents(['{"body": "B", "text": "T"}'], "x", "body")) == ["B"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "x, line 2 is no JSON"),
        ('{"body": "b", "id": 3}', "x, line 2 has no field 'text'; its fields: 'body', 'id'"),
        ('{"text": 3}', "x, line 2: the field 'text' should be a text"),
        ("[1]", "x, line 2: a text or an object"),
        ('"\\ud800"', "x, line 2 is no JSON: it holds half a character"),
    ],
)
def test_what_is_refused(line: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        list(documents(['"fine"\n' + line], "x", None))


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({"text": f"document {n}"}) + "\n" for n in range(3)))
    assert read_documents([path]) == ["document 0", "document 1", "document 2"]
    with pytest.raises(InputError, match="has no field 'body'"):
        read_documents([path], field="body")
    (tmp_path / "b.txt").write_text("text")
    with pytest.raises(InputError, match="the field 'body' changes nothing"):
        read_documents([tmp_path / "b.txt"], field="body")
