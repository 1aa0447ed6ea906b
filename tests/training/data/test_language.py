"""What is said of the texts of a language model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from clearhead.errors import InputError
from clearhead.training.events import Finished, Validated, Warned
from clearhead.training.run import train

MODEL = {"model": 8, "layers": 1, "heads": 2, "feed_forward": 8, "context": 16}
GIVEN: dict[str, Any] = {"tokenizer": "characters", "steps": 2, "model": MODEL, "device": "cpu"}
TEXT = "the quick brown fox jumps over the lazy dog. " * 9


def told(events: list[Any]) -> list[str]:
    return [event.message for event in events if isinstance(event, Warned)]


@pytest.mark.parametrize(
    ("text", "message", "validated"),
    [
        ("one line!", "too small to hold a part of it out", False),
        ("one line and a little more of it, but not very much", "that of 4 tokens only", True),
    ],
)
def test_texts_too_small_to_validate(
    text: str, message: str, validated: bool, tmp_path: Path
) -> None:
    events = list(train([text], out=tmp_path / "run", **GIVEN))
    assert any(message in one for one in told(events)), told(events)
    assert isinstance(events[-1], Finished)
    assert any(isinstance(event, Validated) for event in events) == validated
    assert validated or len(told(events)) == 1  # nothing more is said of what is not used


def test_texts_of_single_tokens(tmp_path: Path) -> None:
    for text in (["a"], ["a", "b", "c"]):
        with pytest.raises(InputError, match="each text is a single token"):
            list(train(text, out=tmp_path / "run", **GIVEN))
        assert not (tmp_path / "run").exists()
    words = [*"abcdefghij", "no"]  # most rows have nothing to predict, one has
    events = list(train(words, out=tmp_path / "run", settings={"row": 2}, **GIVEN))
    assert isinstance(events[-1], Finished)


def test_unknown_characters_are_counted(tmp_path: Path) -> None:
    held = "fox and 漢字 over the ? dog"
    events = list(train([TEXT], validation=[held], out=tmp_path / "run", **GIVEN))
    assert "3 of 25 tokens to validate on are unknown" in told(events)[0]


def test_texts_that_are_learned_and_validated_on(tmp_path: Path) -> None:
    events = list(train([TEXT, "else " * 9], validation=[TEXT, "fox " * 9], out=tmp_path / "run",
                        **GIVEN))  # fmt: skip
    assert "1 of 2 texts to validate on are learned as well" in told(events)[0]


def test_files_that_are_no_text_are_told(tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_text(TEXT)
    (folder / "b.png").write_bytes(b"\x89PNG\0")
    (folder / "c.txt").write_bytes("größer".encode("latin-1"))
    events = list(train(folder, out=tmp_path / "run", **GIVEN))
    assert told(events) == ["2 files are no text in UTF-8 or UTF-16 and left out: b.png, c.txt."]


def test_what_is_refused(tmp_path: Path) -> None:
    for validation, message in (
        (["x"], "too short: they have no token to predict"),
        ([TEXT * 2], "larger than the data"),
    ):
        with pytest.raises(InputError, match=message):
            list(train([TEXT], validation=validation, out=tmp_path / "run", **GIVEN))
        assert not (tmp_path / "run").exists()
    with pytest.raises(InputError, match="standard input can be learned or validated on"):
        list(train("-", validation="-", out=tmp_path / "run", **GIVEN))
