"""Hand-made insight for golden renderings.

``python -m tests.shared.golden_pictures`` rewrites them.

Look at what changed before you keep it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from clearhead.explain.difference import CellChange, Difference, HeadChange, WordChange
from clearhead.explain.head_outputs import HeadOutput, HeadOutputs
from clearhead.explain.pictures import (
    HEADLINE,
    Aids,
    Gallery,
    HeadPicture,
    Mark,
    Source,
    WordPicture,
)
from clearhead.explain.step_table import Sink, StepRow, StepTable
from clearhead.explain.worked_examples import worked_example
from clearhead.views.terminal.render import plain_text

FOLDER = Path(__file__).resolve().parents[1] / "views" / "golden"
NOTES = ("Hidden, with its mass shown: attention to the first token.", HEADLINE)


def marks(words: list[str]) -> tuple[Mark, ...]:
    found, start = [], 0
    for place, word in enumerate(words):
        found.append(Mark(word, start, start + len(word), word.startswith("⟨"), (place,)))
        start += len(word) + 1
    return tuple(found)


def weights(size: int) -> np.ndarray:
    """Rows that sum to 1, with a bright place each."""
    numbers = np.tri(size, dtype=np.float64)
    for row in range(size):
        numbers[row, (row * 3) % (row + 1)] += 4 + row
        numbers[row] /= numbers[row].sum()
    return np.round(numbers, 4)


def head(words: list[str], aids: Aids | None = None) -> HeadPicture:
    axis, numbers = marks(words), weights(len(words))
    visible = np.tri(len(words), dtype=bool)
    return HeadPicture(
        "L1H2", "self", True, axis, axis, numbers, visible, (0,), numbers[:, 0], aids or Aids(),
        NOTES,
    )  # fmt: skip


def word(words: list[str], row: int, over_all: bool = False) -> WordPicture:
    axis, numbers = marks(words), weights(len(words))[row]
    order = sorted(range(1, row + 1), key=lambda place: -numbers[place])
    sources = tuple(
        Source(place, axis[place], float(numbers[place]), round(float(numbers[place]) / 2, 4),
               f"L{place}H2" if over_all else "L1H2")
        for place in order
    )  # fmt: skip
    beyond = tuple(float(sum(numbers[order[n:]])) for n in range(len(order) + 1))
    return WordPicture(
        row, axis[row], axis, numbers, sources, beyond, None if over_all else "L1H2", row, (0,),
        float(numbers[0]), Aids(), NOTES, pooled="max of all 9 heads" if over_all else "",
    )  # fmt: skip


def steps() -> StepTable:
    rows = tuple(
        StepRow(
            name, (0.5, -1.25, float(i)), (0.1 * i, -0.2, 0.75), 2.5 - i, (2.5 - i) / 8,
            "future" if i > 2 else "", 0.0 if i > 2 else 0.3, (0.0, 0.0, 0.0),
            capped=(2.5 - i) / 9, bias=-0.5 * i,
        )
        for i, name in enumerate(["The", "kids", "left", "</script>", "你好", "x" * 40])
    )  # fmt: skip
    outputs = HeadOutputs(
        (HeadOutput("L1H0", (0.1, 0.2, 0.3), (1.0, 2.0), 0.6),
         HeadOutput("L1H1", (0.4, 0.5, 0.6), (0.5, 1.0), 0.4)), (1.5, 3.0), True,
    )  # fmt: skip
    return StepTable(
        "L1H0: where “left” looks", "left", (0.25, -0.5, 1.0), rows, 1 / 8, (0.1, -0.2, 0.3),
        head="L1H0", softcap=30.0, sink=Sink(-1.0, 0.1), outputs=outputs,
        notes=("q and k are shown after rotary: turned by their positions.",),
    )  # fmt: skip


def difference() -> Difference:
    axis = marks(["The", "kids", "lions", "they"])
    return Difference(
        "The kids left.", "The lions left.",
        (HeadChange("L1H0", "L1H0", 0.5), HeadChange("L0H1", "L0H1", 0.125)),
        (WordChange(axis[3], axis[3], 0.3, "L1H0"), WordChange(axis[1], axis[2], 0.1, "L0H1")),
        (CellChange("L1H0", axis[3], axis[1], axis[3], axis[2], 0.6, 0.1),),
        ("right",), (), (HEADLINE,),
    )  # fmt: skip


def gallery() -> Gallery:
    size = 6
    maps = np.stack(
        [np.stack([weights(size) * (1 - 0.2 * h) for h in range(3)]) for _ in range(2)]
    ).astype(np.float32)
    names = tuple(tuple(f"L{layer}H{h}" for h in range(3)) for layer in range(2))
    return Gallery(names, maps, ((0.1, 0.2, 0.3), (0.0, 0.5, 0.25)), Aids(), NOTES)


SENTENCE = "The kids were scared of the lions , so they left right away ."
KIDS = SENTENCE.split()
HOSTILE = ["⟨s⟩", "</script>", "␛[31m", "你好", "😀", "مرحبا", "x" * 60, "<!--", "]]>"]
INSIGHTS: dict[str, tuple[object, int]] = {
    "head_80": (head(KIDS), 80),
    "head_log_50": (head(KIDS, Aids(colour="log")), 50),
    "head_long_80": (head([f"w{i}" for i in range(101)]), 80),
    "head_hostile_80": (head(HOSTILE), 80),
    "word_80": (word(KIDS, 9), 80),
    "word_all_80": (word(KIDS, 9, over_all=True), 80),
    "word_40": (word(KIDS, 9), 40),
    "word_hostile_80": (word(HOSTILE, 8), 80),
    "word_one_80": (word(["Hello"], 0), 80),
    "steps_80": (steps(), 80),
    "selfish_80": (worked_example("selfish")[0], 80),
    "steps_120": (steps(), 120),
    "gallery_80": (gallery(), 80),
    "difference_80": (difference(), 80),
}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, (insight, width) in INSIGHTS.items():
        (FOLDER / f"{name}.txt").write_text(plain_text(insight, width) + "\n")


if __name__ == "__main__":
    main()
