"""What the tests of training share."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clearhead.training.plan import Plan
from clearhead.training.prepare import prepare
from clearhead.training.settings import TrainingSettings
from clearhead.training.tasks.task import Task

WORDS = ("the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "and", "some", "more")
SMALL = {"model": 16, "layers": 2, "heads": 2, "feed_forward": 24, "context": 16}
SETTINGS = {
    "steps": 12, "batch_tokens": 256, "validate_every": 4, "warmup": 3, "seed": 5, "average": 3,
}  # fmt: skip
Make = Callable[..., tuple[Task, TrainingSettings]]


@pytest.fixture(scope="session")
def text_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A text with something to learn in it."""
    generator = random.Random(7)
    lines = (" ".join(generator.choice(WORDS) for _ in range(9)) for _ in range(120))
    path = tmp_path_factory.mktemp("texts") / "words.txt"
    path.write_text("\n".join(lines))
    return path


@pytest.fixture
def losses() -> Callable[[Path], list[tuple[int, str, float]]]:
    """Every loss that a run's log tells: step, which, and the exact number."""

    def read(folder: Path) -> list[tuple[int, str, float]]:
        lines: list[dict[str, Any]] = [
            json.loads(line)
            for line in (folder / "training" / "log.jsonl").read_text().splitlines()
        ]
        return [
            (line["step"], kind, line[kind])
            for line in lines
            for kind in ("loss", "validation")
            if kind in line
        ]

    return read


@pytest.fixture
def make(text_file: Path) -> Make:
    """Makes a tiny task with some settings changed."""

    def made(**changes: object) -> tuple[Task, TrainingSettings]:
        plan = Plan(
            texts=(str(text_file),), tokenizer="characters", model=SMALL,
            settings=SETTINGS | changes,
        )  # fmt: skip
        task, settings, _ = prepare(plan)
        return task, settings

    return made
