"""One text of a batch: tokens in, events out."""

from __future__ import annotations

import random

from clearhead.checkpoints.load import Loaded
from clearhead.generation.event import Alternative, Event
from clearhead.generation.row import Row
from clearhead.generation.stop_strings import StopStrings


def row_of(loaded: Loaded | None, *stops: str) -> Row:
    stream = None if loaded is None or loaded.tokenizer is None else loaded.tokenizer.stream()
    return Row(3, 1, [5, 7], [5, 7], stream, StopStrings(stops), random.Random(0), 17)


def test_a_token_is_added_to_text_and_window() -> None:
    row, other = row_of(None), Alternative(13, "", 0.5)
    assert row.append(11, 0.25, (other,)) == Event("", 11, 0.25, (other,), 3, 1)
    row.append(13, 0.5, ())
    assert (row.prompt, row.ids, row.window) == ([5, 7], [11, 13], [5, 7, 11, 13])


def test_text_that_may_become_a_stop_string_comes_at_the_end(wordy: Loaded) -> None:
    assert wordy.tokenizer is not None
    row = row_of(wordy, "doors!")
    ids = wordy.tokenizer.encode("the door", special=False)
    shown = "".join(row.append(id, 0.5, ()).text for id in ids)
    last = row.finish("max-tokens")
    assert shown == "the "
    assert last == Event("door", row=3, sample=1, finish="max-tokens")


def test_a_stop_string_found_at_the_end_is_the_reason(wordy: Loaded) -> None:
    assert wordy.tokenizer is not None
    row = row_of(wordy, "door")
    shown = "".join(row.append(id, 0.5, ()).text for id in wordy.tokenizer.encode("a door"))
    last = row.finish("max-tokens")
    assert (shown + last.text).strip() == "a"
    assert last.finish == "stop-string"
