"""One's own numbers from a CSV file."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import clearhead as ch
from clearhead.errors import InputError
from clearhead.explain.own_numbers.file import tables_of_file

SELFISH = "query,,2,0,-1\nkey,a,1,0,1\nkey,b,1,0,−1\n"


def read(tmp_path: Path, text: str) -> list[object]:
    path = tmp_path / "mine.csv"
    path.write_text(text, encoding="utf-8")
    return list(tables_of_file(path))


def test_without_values_the_keys_are_the_values(tmp_path: Path) -> None:
    (table,) = read(tmp_path, SELFISH)
    assert [row.score for row in table.rows] == [1.0, 3.0]  # type: ignore[attr-defined]
    assert table.rows[1].value == (1.0, 0.0, -1.0)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "text",
    [
        SELFISH,
        "\ufeff" + SELFISH,  # a spreadsheet's mark of UTF-8
        SELFISH.replace("\n", "\r\n"),
        SELFISH.replace(",", ", "),
        SELFISH.replace(",", "\t"),
        SELFISH.replace(",", ";"),
        "# mine\n" + SELFISH.replace(",", ";").replace("2", "2,0").replace("1", "1,0"),
        SELFISH + "scale,1\n",
    ],
)
def test_what_spreadsheets_write_is_the_same_table(tmp_path: Path, text: str) -> None:
    (table,) = read(tmp_path, text)
    assert [row.word for row in table.rows] == ["a", "b"]  # type: ignore[attr-defined]
    assert table.query == (2.0, 0.0, -1.0)  # type: ignore[attr-defined]
    assert [row.score for row in table.rows] == [1.0, 3.0]  # type: ignore[attr-defined]


@pytest.mark.parametrize("scale", [None, 0.25])
@pytest.mark.parametrize("causal", [False, True])
def test_queries_keys_values_and_settings(
    tmp_path: Path, scale: float | None, causal: bool
) -> None:
    q, k = torch.randn(2, 3, 5, dtype=torch.float64)
    v = torch.randn(3, 2, dtype=torch.float64)
    lines = ["kind,word,numbers", "# a remark", ""]
    for kind, matrix in (("query", q), ("KEY", k), ("value", v)):
        lines += [f'{kind},"w, {row}",' + ",".join(map(repr, line.tolist()))
                  for row, line in enumerate(matrix)]  # fmt: skip
    lines += ["causal"] * causal + ([] if scale is None else [f"scale,,{scale}"])
    tables = read(tmp_path, "\n".join(lines))
    steps = ch.attention_steps(q, k, v, scale=scale, causal=causal)
    for row, table in enumerate(tables):
        assert table.word == f"w, {row}"  # type: ignore[attr-defined]
        weights = [one.weight for one in table.rows]  # type: ignore[attr-defined]
        assert weights == steps.weights[row].tolist()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no line that begins with query"),
        ("query,,1\n", "no line that begins with key"),
        ("query,,1\nkey,,1,2\n", "as many numbers; got 1 and 2"),
        ("query,,1\nkey,,x\n", "line 2: a finite number is wanted; got 'x'"),
        ("query,,1\nkey,,nan\n", "line 2: a finite number"),
        ("query,,1\nkey,,1_0\n", "line 2: a finite number"),
        ("query,,1\nkey,a\n", "line 2: numbers are wanted"),
        ("query,,1\nkey,a,1\nkey,b,1,2\n", "line 3: this key has 2 numbers, and the first has 1"),
        ("query,,1\nkye,a,1\n", "line 2: a line begins with query, key, value, scale, causal"),
        ("query,,1\nkey,a,1\nvalue,a,1\nvalue,b,1\n", "got 1 keys and 2 values"),
        ("query,,1\nkey,a,1\nscale,,1,2\n", "line 3: scale is one number, once"),
        ('query,,1\nkey,"a,1\n', "is no CSV file"),
        ("query,2,0,-1\nkey,1,0,1\n", "the words here are numbers: 2, 1"),
        ("query,nan,1\nkey,−1,1\n", "the words here are numbers: nan, −1"),
    ],
)
def test_a_bad_file_says_where_and_what(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read(tmp_path, text)


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        tables_of_file(tmp_path / "missing.csv")
    with pytest.raises(InputError):
        tables_of_file(tmp_path)
    (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError):
        tables_of_file(tmp_path / "bytes.csv")


def test_too_many_numbers_are_refused(tmp_path: Path) -> None:
    lines = "\n".join(["query,,1"] * 2003 + ["key,,1"] * 2003)
    with pytest.raises(InputError, match="too many for tables"):
        read(tmp_path, lines)
