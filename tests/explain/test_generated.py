from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from clearhead.explain.generated import GeneratedText, generated_tokens
from clearhead.explain.marks import marks_of
from clearhead.explain.salience import SalienceAxes
from tests.shared.explain_models import passage

WORDS = ["So", " kids", " saw", " lions", " and", " they", " ran"]
TEXT = passage(WORDS)
MARKS = marks_of(TEXT, 7, words=True)
READ = SalienceAxes(MARKS[:6], MARKS[:6], (0,), tuple(range(6)), causal=True)  # “ran” was not read


def weights_of(layer: str, rows: Sequence[int]) -> tuple[list[str], Tensor]:
    weights = torch.zeros(1, 6, 6)
    weights[0, 5, 1] = 0.5  # the query at “they” predicted “ran”
    weights[0, 4, 2] = 0.004  # would be shown as 0.00
    return [f"{layer}H0"], weights[:, list(rows)]


def test_a_generated_token_has_the_sources_of_the_token_before_it() -> None:
    written = GeneratedText(TEXT, 5, (0.25, None))
    they, ran = generated_tokens(written, MARKS, READ, ["L0"], weights_of)
    assert (they.text, they.position, they.probability, they.sources) == ("they", 5, 0.25, ())
    assert (ran.text, ran.position, ran.probability) == ("ran", 6, None)
    (source,) = ran.sources
    assert (source.mark.text, source.weight, source.head) == ("kids", 0.5, "L0H0")


def test_nothing_generated_gives_nothing() -> None:
    assert generated_tokens(GeneratedText(TEXT, 7, ()), MARKS, READ, ["L0"], weights_of) == ()
