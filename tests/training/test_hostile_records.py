"""run.json with a right checksum and wrong values: every field of plan, settings and model in turn.
The run is resumed, or refused with one of our errors; it never hangs."""

from __future__ import annotations

import dataclasses
import json
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from clearhead.errors import ClearheadError
from clearhead.training.plan import MODEL_FIELDS, SETTING_FIELDS, Plan
from clearhead.training.run import train
from clearhead.training.run_folder.checksum import checksum_of_json
from tests.training.conftest import SMALL

BAD: tuple[Any, ...] = (None, -1, 2**40, 1e300, "\ud800", [[]], {"a": []})
SECONDS = 60  # for one value, on a busy machine; a hang takes for ever
PLACES = [
    *(("plan", field.name) for field in dataclasses.fields(Plan)),
    *(("settings", name) for name in sorted(SETTING_FIELDS)),
    *(("model", name) for name in sorted(MODEL_FIELDS)),
    ("files", "texts.jsonl"), ("files", "tokenizer/vocabulary.json"),
]  # fmt: skip

pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture(scope="module", params=["with checkpoints", "without"])
def begun(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was left after its beginning."""
    folder = tmp_path_factory.mktemp("begun") / "run"
    texts = ["the quick brown fox jumps over the lazy dog. " * 9]
    events = train(texts, out=folder, tokenizer="characters", steps=9, device="cpu", model=SMALL)
    next(events)
    events.close()
    if request.param == "with checkpoints":
        for _ in train(out=folder, resume=True, steps=10, stop=lambda: True, device="cpu"):
            pass
    return folder


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    def hangs(_: int, __: FrameType | None) -> None:
        raise AssertionError("it hangs")

    before = signal.signal(signal.SIGALRM, hangs)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def forged(path: Path, place: str, name: str, value: object) -> None:
    content = json.loads(path.read_text())
    del content["sha256"]
    inside = content["plan"]["settings"] if place == "settings" else content[place]
    inside[name] = value
    path.write_text(json.dumps(content | {"sha256": checksum_of_json(content)}))


@pytest.mark.parametrize(("place", "name"), PLACES)
def test_every_field_with_bad_values(place: str, name: str, begun: Path, tmp_path: Path) -> None:
    """Quick refusals; what is accepted is resumed as far as its first event."""
    folder = tmp_path / "run"
    shutil.copytree(begun, folder)
    sound = (folder / "training" / "run.json").read_bytes()
    for value in BAD:
        (folder / "training" / "run.json").write_bytes(sound)
        forged(folder / "training" / "run.json", place, name, value)
        with at_most(SECONDS):
            try:
                events = train(out=folder, resume=True, device="cpu")
                next(events)
                events.close()
            except ClearheadError as error:
                assert error.message
