"""Folders of training runs: resumed for a few events."""

from __future__ import annotations

import tempfile
from itertools import islice
from pathlib import Path
from random import Random

import torch

from clearhead.training.events import Saved
from clearhead.training.run import train
from tests.hostile.formats.models import folder_files
from tests.hostile.mutant import Format

TEXT = "the quick brown fox jumps over the lazy dog. " * 9
SMALL = {"model": 8, "layers": 1, "heads": 2, "feed_forward": 8, "context": 16}
EVENTS = 6


def use(folder: Path, random: Random) -> None:
    """Resumes the run and stops it again after a few events."""
    events = train(out=folder / "run", resume=True)
    try:
        for _ in islice(events, EVENTS):
            pass
    finally:
        events.close()


def _specimens() -> list[dict[str, bytes]]:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        events = train(
            [TEXT, TEXT[5:]], out=folder, tokenizer="characters", steps=4, model=SMALL,
            settings={"validate_every": 2, "average": 2},
        )  # fmt: skip
        saved = 0
        for event in events:
            saved += isinstance(event, Saved)
            if saved == 2:
                break
        events.close()
        torch.manual_seed(0)
        return [folder_files(Path(place))]


RUN_FOLDER = Format("run folder", _specimens, use, weight=0.02)
