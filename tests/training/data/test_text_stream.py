"""Files as text: compressed, in several encodings, damaged."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from clearhead.errors import InputError
from clearhead.training.data import text_stream
from clearhead.training.data.corpus import read_text
from clearhead.training.data.text_stream import is_text, plain_name

TEXT = "Zeile eins\nzwei: äöü 漢字 🙂\n" * 3
WAYS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes, "gzip": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress,
    "two members": lambda data: gzip.compress(data[:7]) + gzip.compress(data[7:]),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("block", [1, 3, 7, 1 << 20])
def test_every_way_and_encoding(
    way: str, encoding: str, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_stream, "BLOCK", max(block, 4))  # a mark is in the first block
    path = tmp_path / "file"
    path.write_bytes(WAYS[way](TEXT.replace("\n", "\r\n").encode(encoding)))
    assert read_text(path) == TEXT
    assert is_text(path)


def test_a_lone_carriage_return_stays(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a\rb\r\nc\r")
    assert read_text(path) == "a\rb\nc\r"


@pytest.mark.parametrize("way", ["gzip", "bz2", "xz"])
def test_damaged_files_are_told(way: str, tmp_path: Path) -> None:
    data = WAYS[way]((TEXT * 50).encode())
    path = tmp_path / "file"
    for damaged in (data[: len(data) // 2], data[:-9] + b"\xff" * 9):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match="compressed, and damaged"):
            read_text(path)


def test_zstandard_is_refused_with_a_way_out(tmp_path: Path) -> None:
    path = tmp_path / "file.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd rest")
    with pytest.raises(InputError, match="Zstandard, which is not read here"):
        read_text(path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"abc\xe4", r"not UTF-8 text \(byte 3\)"),
        (b"abc\xff def", r"not UTF-8 text \(byte 3\)"),
        (b"abc\xe2\x82", r"not UTF-8 text \(byte 3\)"),  # a character that is cut off
        ("ab".encode("utf-16") + b"c", "not UTF-16-LE text"),
    ],
)
def test_what_is_no_text(data: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(InputError, match=message):
        read_text(path)


def test_places_are_counted_over_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_stream, "BLOCK", 5)
    path = tmp_path / "file"
    path.write_bytes("äöüäöü".encode() + b"\xff")
    with pytest.raises(InputError, match=r"byte 12"):
        read_text(path)


def test_names_without_compression() -> None:
    assert plain_name(Path("a/b.jsonl.gz")) == "b.jsonl"
    assert plain_name(Path("b.TXT")) == "b.TXT"
