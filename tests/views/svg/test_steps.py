from __future__ import annotations

from clearhead.explain.worked_examples import worked_example
from clearhead.views.svg.steps import draw_steps
from tests.shared.golden_pictures import steps as golden_steps
from tests.shared.made_looks import made_look
from tests.shared.svg_elements import texts


def test_a_real_head_has_every_step() -> None:
    drawn = texts(draw_steps(made_look().steps("L1H4", "they")))
    assert {"score", "score/2", "softmax", "softmax·v", "sum", "−∞ future"} <= set(drawn)


def test_the_worked_example_has_the_numbers_of_the_textbook() -> None:
    drawn = texts(draw_steps(worked_example("selfish")[0]))
    assert {"q of “query” = [2 0 −1]", "k = v", "0.87", "[0.98 0.01 −0.75]"} <= set(drawn)
    assert "v" not in drawn


def test_softcap_bias_and_sink_are_shown_where_a_model_has_them() -> None:
    drawn = texts(draw_steps(golden_steps()))
    assert {"cap 30", "+ bias", "score/8"} <= set(drawn)
    assert "A sink with score −1 takes 0.10 of the softmax." in drawn
