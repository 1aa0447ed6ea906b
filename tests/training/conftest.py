"""What the tests of training share."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

WORDS = ("the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "and", "some", "more")


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
