"""The log: cut where a checkpoint says; a torn or odd line never stops a run."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from clearhead.training.run_folder.log import EMPTY, RunLog
from clearhead.training.run_folder.progress import LogPosition


@pytest.fixture
def written(tmp_path: Path) -> tuple[RunLog, LogPosition]:
    """A log of three steps, and its position after the second."""
    log = RunLog(tmp_path / "log.jsonl")
    log.append({"step": 1, "loss": 1.0})
    log.append({"step": 2, "loss": 0.5})
    position = log.position()
    log.append({"step": 3, "loss": 0.25})
    return log, position


def test_it_is_cut_after_a_checkpoint(written: tuple[RunLog, LogPosition]) -> None:
    log, position = written
    with log.path.open("a") as file:
        file.write('{"step": 4, "lo')  # a power cut
    assert [line["step"] for line in log.lines()] == [1, 2, 3]
    again = RunLog(log.path)
    assert again.cut(position, 2) is None
    assert again.lines() == [{"step": 1, "loss": 1.0}, {"step": 2, "loss": 0.5}]
    again.append({"step": 3, "loss": 0.25})
    third = RunLog(log.path)
    assert third.cut(again.position(), 3) is None
    assert len(third.lines()) == 3
    assert third.cut(EMPTY, 0) is None
    assert log.path.read_bytes() == b""


ODD = (
    b"{", b"\xff\xfe", b"[1, 2]", b"null", b"{}", b'{"step": "1"}', b'{"step": -1}',
    b'{"step": 1, "loss": NaN}', b'{"step": 1, "loss": "a"}', b'{"step": 1, "step": 2}',
    b"[" * 100_000, b'{"step": ' + b"9" * 5000 + b"}", b'{"step": true}', b"", b"\0" * 4096,
    b'{"step": 1, "loss": ' + b"9" * 400 + b"}",
)  # fmt: skip


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: str(odd[:24]))
def test_an_odd_line_is_left_out_and_told(odd: bytes, written: tuple[RunLog, LogPosition]) -> None:
    log, position = written
    lines = log.path.read_bytes().splitlines(keepends=True)
    log.path.write_bytes(lines[0] + odd + b"\n" + lines[1] + lines[2])
    again = RunLog(log.path)
    wrong = again.cut(position, 2)
    assert wrong is not None and "is damaged" in wrong and "up to step 2" in wrong
    assert again.lines() == [{"step": 1, "loss": 1.0}, {"step": 2, "loss": 0.5}]
    assert RunLog(log.path).cut(again.position(), 2) is None  # mended


def test_every_flipped_bit_before_the_cut_is_told(written: tuple[RunLog, LogPosition]) -> None:
    log, position = written
    sound, generator = log.path.read_bytes(), random.Random(5)
    for place in range(position.bytes):
        broken = bytearray(sound)
        broken[place] ^= 1 << generator.randrange(8)
        log.path.write_bytes(broken)
        assert RunLog(log.path).cut(position, 2) is not None


def test_a_log_that_is_gone(written: tuple[RunLog, LogPosition]) -> None:
    log, position = written
    log.path.unlink()
    assert log.lines() == []
    again = RunLog(log.path)
    assert again.cut(position, 2) is not None
    again.append({"step": 3, "loss": 0.25})
    assert len(again.lines()) == 1
