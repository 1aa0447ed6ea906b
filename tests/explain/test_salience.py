"""The rule that chooses a word and a head, on heads made by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from clearhead.explain.marks import marks_of
from clearhead.explain.salience import (
    SalienceAxes,
    agreement,
    evenly_spaced,
    most_salient,
    scores_of,
)
from tests.shared.explain_models import passage

WORDS = ["So", " kids", " saw", " lions", " and", " they", " ran", " off"]
KIDS, LIONS, THEY, RAN, OFF = 1, 3, 5, 6, 7


def field(words: list[str] = WORDS, *, cross: bool = False) -> SalienceAxes:
    marks = marks_of(passage(words), len(words), words=True)
    own = None if cross else tuple(range(len(marks)))
    return SalienceAxes(marks, marks, (0,), own, causal=not cross)


class Heads:
    """Layers of heads by name; rows not given look at the first token."""

    def __init__(self, size: int = 8) -> None:
        self.size = size
        self.layers: dict[str, dict[int, dict[tuple[int, int], float]]] = {}

    def put(self, layer: str, head: int, **cells: dict[tuple[int, int], float]) -> Heads:
        self.layers.setdefault(layer, {})[head] = cells["cells"]
        return self

    def __call__(self, layer: str, rows: Sequence[int]) -> tuple[list[str], Tensor]:
        heads = self.layers[layer]
        weights = torch.zeros(len(heads), self.size, self.size)
        for place, head in enumerate(sorted(heads)):
            for (row, column), weight in heads[head].items():
                weights[place, row, column] = weight
        weights[:, :, 0] += (1 - weights.sum(dim=2)).clamp(min=0)
        return [f"{layer}H{head}" for head in sorted(heads)], weights[:, list(rows)]


def sink(column: int, weight: float) -> dict[tuple[int, int], float]:
    return {(row, column): weight for row in range(column + 1, 8)}


def test_a_sink_is_strong_and_tells_nothing() -> None:
    heads = Heads().put("L0", 0, cells=sink(LIONS, 0.9)).put("L0", 1, cells={(THEY, KIDS): 0.4})
    salient = most_salient(field(), ["L0"], heads, THEY)
    assert (salient.column, salient.head) == (KIDS, "L0H1")
    # usual(kids) = 0 as the median of the rows that look at it, so salience = 0.4 · 0.4
    assert salient.score == pytest.approx(0.16)
    assert salient.weight == pytest.approx(0.4)


def test_the_usual_weight_is_the_middle_of_the_two_middle_ones() -> None:
    """Four rows look at *kids* with 0.1, 0.2, 0.4 and 0.8: the usual weight is 0.3."""
    rows = zip((3, 4, THEY, 6), (0.1, 0.2, 0.8, 0.4), strict=True)
    cells = {(row, KIDS): weight for row, weight in rows}
    words = WORDS[:7]
    heads = Heads(7).put("L0", 0, cells=cells)
    _, scores = scores_of(field(words), "L0", heads, THEY)
    assert float(scores[0, KIDS]) == pytest.approx(0.8 * (0.8 - 0.3), abs=1e-6)


def test_several_heads_that_agree_outweigh_one() -> None:
    heads = Heads().put("L0", 0, cells={(THEY, LIONS): 0.6})
    for head in range(1, 4):
        heads.put("L1", head, cells={(THEY, KIDS): 0.4 + head / 100})
    salient = most_salient(field(), ["L0", "L1"], heads, THEY)
    assert (salient.column, salient.head) == (KIDS, "L1H3")  # 0.41² + 0.42² + 0.43² > 0.6²


def test_a_pronoun_is_asked_first() -> None:
    heads = Heads().put("L0", 0, cells={(RAN, KIDS): 0.9, (THEY, KIDS): 0.3})
    salient = most_salient(field(), ["L0"], heads)
    assert salient.row == THEY


def test_without_a_pronoun_the_most_telling_word_is_asked() -> None:
    words = [" we" if word == " they" else word for word in WORDS]
    heads = Heads().put("L0", 0, cells={(RAN, KIDS): 0.9, (THEY, KIDS): 0.3})
    assert most_salient(field(words), ["L0"], heads).row == RAN


def test_neighbours_the_word_itself_and_the_first_do_not_count() -> None:
    cells = {(THEY, THEY): 0.5, (THEY, 4): 0.3, (RAN, THEY): 0.9, (THEY, 0): 0.2}
    salient = most_salient(field(), ["L0"], Heads().put("L0", 0, cells=cells), THEY)
    assert salient.column is None
    assert salient.head == "L0H0"


def test_in_cross_attention_there_are_no_neighbours() -> None:
    heads = Heads().put("C0", 0, cells={(THEY, THEY): 0.9, (OFF, KIDS): 0.2})
    salient = most_salient(field(cross=True), ["C0"], heads)
    assert (salient.row, salient.column) == (THEY, THEY)


def test_scores_and_sources_name_every_head() -> None:
    heads = Heads().put("L0", 0, cells={(THEY, KIDS): 0.5, (THEY, LIONS): 0.25})
    names, scores = scores_of(field(), "L0", heads, THEY)
    assert names == ["L0H0"]
    assert float(scores[0, KIDS]) == pytest.approx(0.25)
    found = agreement(field(), ["L0"], heads, [THEY])
    assert found.sources(0, 2) == [(KIDS, 0.5, "L0H0"), (LIONS, 0.25, "L0H0")]


def test_a_long_text_is_sampled_from_end_to_end() -> None:
    places = evenly_spaced(range(1000))
    assert len(places) == 64
    assert (places[0], places[-1]) == (0, 999)
