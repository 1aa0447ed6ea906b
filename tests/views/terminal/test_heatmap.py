from __future__ import annotations

from rich.cells import cell_len

from clearhead.explain.pictures import Aids
from clearhead.views.terminal.heatmap import heatmap
from tests.shared.golden_pictures import KIDS, head


def test_a_cell_has_the_shade_of_its_weight() -> None:
    picture = head(KIDS)
    lines = [str(line) for line in heatmap(picture, 80)]
    assert len(lines) == 1 + len(KIDS) + 1
    assert "█" in lines[1 + int(picture.weights[:, 1:].max(axis=1).argmax())]
    assert lines[1].rstrip().endswith("·")  # the first word sees none of the others
    assert "· masked" in lines[-1] and "█ ≤ " in lines[-1]


def test_a_long_text_is_pooled_to_forty_lines() -> None:
    lines = [str(line) for line in heatmap(head([f"w{i}" for i in range(101)]), 80)]
    assert len(lines) == 40 + 1 and max(map(cell_len, lines)) <= 80
    assert lines[0].split()[:2] == ["0", "w0"] and lines[20].split()[0] == str(20 * 101 // 40)


def test_the_legend_of_logarithmic_colours_has_decades() -> None:
    linear, log = (
        str(list(heatmap(head(KIDS, Aids(colour=colour)), 80))[-1]) for colour in ("linear", "log")
    )
    assert linear.count("≤") == log.count("≤") == 4 and linear != log
