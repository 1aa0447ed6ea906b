"""What a chapter of the course consists of, as plain data.

Texts may hold ``*emphasis*``, ``**strong**`` and `` `code` ``; nothing else is markup.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Figure:
    """A live figure: ``kind`` names its script, ``data`` are the numbers that it starts with."""

    kind: str
    title: str
    data: dict[str, Any] = field(default_factory=dict)
    numbers: str = ""  # numbers of a real model that it shows: a name of ``real_numbers``
    waits: bool = False  # True if it is ready only when those are unpacked
    same: tuple[tuple[str, str], ...] = ()  # (expression of the code, name of the figure's numbers)


@dataclass(frozen=True)
class Exercise:
    """A question that is answered before the figure shows it, and checked exactly."""

    question: str
    answer: tuple[float, ...]  # numbers; of a choice the place of the right option
    python: str  # the expression that gives the answer, after the chapter's code
    explanation: str
    decimals: int = 0  # that are asked for
    labels: tuple[str, ...] = ("answer",)  # of the boxes
    options: tuple[str, ...] = ()  # of a choice
    state: dict[str, Any] = field(default_factory=dict)  # fields of the figure that show it


@dataclass(frozen=True)
class Chapter:
    """One chapter: a question, a text, a figure, code, an exercise, and what comes next."""

    id: str  # of its link: "#cache"
    title: str
    question: str
    text: tuple[str, ...]  # before the figure
    figure: Figure
    after: tuple[str, ...]  # between figure and code
    code: str
    exercise: Exercise
    next: str
    download: bool = False  # True if the code needs a default model
