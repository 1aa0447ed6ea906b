"""The numbers of SmolLM2 in the package are those of the model."""

from __future__ import annotations

import numpy as np
import pytest

import clearhead as ch
from clearhead.explain.course.numbers import course_numbers
from clearhead.explain.course.packed import unpacked
from clearhead.views.course.real_numbers import real_numbers


@pytest.mark.download
@pytest.mark.slow
def test_the_kept_numbers_are_the_model_s() -> None:
    found = course_numbers(ch.load("smollm2"))
    kept = {
        name: real_numbers(name) for name in ("next_token", "pronoun", "prediction", "token_way")
    }
    logits = [unpacked(one["next_token"]["logits"]) for one in (found, kept)]
    assert np.allclose(logits[0], logits[1], atol=0.02)  # other processors add in another order
    for one, other in zip(found["pronoun"]["sentences"], kept["pronoun"]["sentences"], strict=True):
        assert one["tokens"] == other["tokens"]
        assert np.allclose(one["weights"], other["weights"], atol=2e-3)
    assert abs(found["prediction"]["total"] - kept["prediction"]["total"]) < 0.02
    finals = [unpacked(one["token_way"]["final"]) for one in (found, kept)]
    assert np.allclose(finals[0], finals[1], rtol=0.01, atol=0.5)
    assert found["token_way"]["layers"][-1]["top"][0][0] == " Paris"
