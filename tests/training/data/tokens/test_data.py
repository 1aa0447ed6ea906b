"""The tokens of a run in its folder: kept once, checked, complete without the sources."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clearhead.errors import CheckpointError, InputError
from clearhead.training import prepare
from clearhead.training.data.tokens.data import DataFacts, PartFacts, TokenData
from clearhead.training.data.tokens.file import TokenFile
from clearhead.training.data.vocabulary import make_tokenizer
from clearhead.training.events import Event, Stepped, Warned
from clearhead.training.run import train

MODEL = {"model": 8, "layers": 1, "heads": 2, "feed_forward": 8, "context": 16}
GIVEN: dict[str, Any] = {"tokenizer": "characters", "steps": 3, "model": MODEL, "device": "cpu"}
TEXT = "the quick brown fox jumps over the lazy dog. " * 9


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """A run of a file that was left after its first step."""
    (tmp_path / "book.txt").write_text(TEXT)
    events = train(tmp_path / "book.txt", out=tmp_path / "run", **GIVEN)
    assert any(isinstance(event, Stepped) for event in events)
    events.close()
    return tmp_path


def resumed(folder: Path) -> list[Event]:
    return list(train(out=folder / "run", resume=True, device="cpu"))


def losses(events: list[Event]) -> list[float]:
    return [event.loss for event in events if isinstance(event, Stepped)]


def test_the_sources_are_not_needed_any_more(begun: Path) -> None:
    whole = losses(list(train(begun / "book.txt", out=begun / "whole", **GIVEN)))
    (begun / "book.txt").unlink()
    events = resumed(begun)
    assert losses(events) == whole
    assert not [event for event in events if isinstance(event, Warned)]


def test_a_changed_source_is_told(begun: Path) -> None:
    whole = losses(list(train(begun / "book.txt", out=begun / "whole", **GIVEN)))
    (begun / "book.txt").write_text(TEXT.replace("fox", "cat"))
    events = resumed(begun)
    told = [event.message for event in events if isinstance(event, Warned)]
    assert len(told) == 1 and "book.txt has changed since the run began" in told[0]
    assert losses(events) == whole


def test_a_file_that_was_only_touched_has_not_changed(begun: Path) -> None:
    os.utime(begun / "book.txt", ns=(1, 1))
    assert not [event for event in resumed(begun) if isinstance(event, Warned)]


@pytest.mark.parametrize("name", ["learned.ids", "learned.ends", "held.ids", "facts.json"])
def test_damaged_tokens_are_refused(name: str, begun: Path) -> None:
    path = begun / "run" / "training" / "tokens" / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)
    with pytest.raises(CheckpointError, match=rf"{name} is damaged or was changed"):
        resumed(begun)


def test_a_source_that_changes_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "book.txt"
    path.write_text(TEXT)

    def making(*given: Any, **options: Any) -> Any:
        tokenizer = make_tokenizer(*given, **options)
        path.write_text(TEXT + "more")
        return tokenizer

    monkeypatch.setattr(prepare, "make_tokenizer", making)
    with pytest.raises(InputError, match=r"book.txt has changed while it was being read"):
        list(train(path, out=tmp_path / "run", **GIVEN))
    assert not (tmp_path / "run").exists()


def test_facts_that_contradict_the_tokens(tmp_path: Path) -> None:
    for name in ("learned", "held"):
        (tmp_path / f"{name}.ids").write_bytes(b"\5\0\7\0")
        (tmp_path / f"{name}.ends").write_bytes(np.array([2], "<i8").tobytes())
    part = PartFacts(documents=1, tokens=2, characters=2, bytes=1)
    data = TokenData(
        TokenFile.of([[5, 7]]), TokenFile.of([[5, 7]]), DataFacts("uint16", part, part)
    )
    data.write_facts(tmp_path)
    opened = TokenData.open(tmp_path)
    assert opened.fingerprint == data.fingerprint and opened.bytes_per_token == 1.0
    opened.check_ids(8)
    with pytest.raises(CheckpointError, match="not of its vocabulary"):
        opened.check_ids(7)
    facts = json.loads((tmp_path / "facts.json").read_text())
    facts["held"]["tokens"] = 3
    (tmp_path / "facts.json").write_text(json.dumps(facts))
    with pytest.raises(CheckpointError, match=r"held.ids does not have the tokens"):
        TokenData.open(tmp_path)
    facts["ids"] = "float64"
    (tmp_path / "facts.json").write_text(json.dumps(facts))
    with pytest.raises(CheckpointError, match="ids are uint16 or uint32"):
        TokenData.open(tmp_path)
