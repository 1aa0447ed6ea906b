"""The curve in text and SVG."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

from clearhead.training.curve import POINTS_DRAWN, Curve

LOG = [{"step": n, "loss": 5 - n / 100} for n in range(1, 401)] + [{"step": 400, "validation": 2.0}]


def test_text() -> None:
    shown = Curve.from_log(LOG).text(width=30, height=5).splitlines()
    assert len(shown) == 8
    assert shown[0].startswith("   4.9") and "·" in shown[0]
    assert shown[4].startswith("   1.00 ┤")
    assert shown[6].endswith("step 400")
    assert any("●" in line for line in shown)
    assert Curve.from_log([]).text() == "no steps yet"


def test_svg_is_sound_and_escaped() -> None:
    curve = Curve.from_log(LOG)
    assert len(curve.training) <= POINTS_DRAWN
    root = ElementTree.fromstring(curve.svg("a <b> & c"))
    lines = [element for element in root if element.tag.endswith("polyline")]
    assert len(lines) == 2
    assert [len(line.attrib["points"].split()) for line in lines] == [len(curve.training), 1]
    assert any(element.text == "a <b> & c" for element in root)
    ElementTree.fromstring(Curve.from_log([]).svg())


def test_means_of_runs_of_steps() -> None:
    curve = Curve.from_log({"step": n, "loss": float(n)} for n in range(1, 2 * POINTS_DRAWN + 1))
    assert curve.training[0] == (2, 1.5)


def test_everything_else_that_the_log_has() -> None:
    heads = {"L0H0": {"entropy": 1.0, "score": 3.0, "first": 0.25}, "L0H1": {"entropy": 2.0}}
    log: list[dict[str, Any]] = [
        {"step": n, "loss": 5 - n / 100, "learning_rate": 0.01, "gradient": 1 / n}
        for n in range(1, 401)
    ]
    log += [{"step": step, "validation": 2.0, "heads": heads} for step in (200, 400)]
    curve = Curve.from_log(log)
    assert [panel.title for panel in curve.panels] == [
        "learning rate", "norm of the gradient", "entropy of each head, bits",
        "largest score of each head", "weight on the first token, each head",
    ]  # fmt: skip
    assert curve.panels[2].lines == {
        "L0H0": [(200, 1.0), (400, 1.0)],
        "L0H1": [(200, 2.0), (400, 2.0)],
    }
    root = ElementTree.fromstring(curve.svg())
    titles = [element.text for element in root.iter() if element.tag.endswith("title")]
    assert titles.count("L0H0") == 3 and titles.count("L0H1") == 1
