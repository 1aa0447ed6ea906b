"""Settings: the order of the steps, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from transformers.generation import logits_process as theirs

from clearhead.errors import InputError
from clearhead.generation.settings import Settings


def test_order_of_the_steps_is_transformers() -> None:
    logits = torch.randn(2, 101, generator=torch.Generator().manual_seed(1)) * 3
    rows = [[3, 5, 3, 8], [1, 2, 3, 4]]
    settings = Settings(
        temperature=0.6, top_k=31, top_p=0.9, min_p=0.01, typical=0.95, repetition_penalty=1.2
    )
    got = settings.filtered(
        settings.penalised(logits, [r[:2] for r in rows], [r[2:] for r in rows])
    )
    wanted = logits.clone()
    for step in (
        theirs.RepetitionPenaltyLogitsProcessor(1.2), theirs.TemperatureLogitsWarper(0.6),
        theirs.TopKLogitsWarper(31), theirs.TopPLogitsWarper(0.9), theirs.MinPLogitsWarper(0.01),
        theirs.TypicalLogitsWarper(0.95),
    ):  # fmt: skip
        wanted = step(torch.tensor(rows), wanted)
    torch.testing.assert_close(got.log_softmax(-1), wanted.log_softmax(-1))


def test_presence_and_frequency_count_the_text_alone() -> None:
    settings = Settings(presence_penalty=1.0, frequency_penalty=0.5)
    got = settings.penalised(torch.zeros(1, 4), [[0, 0]], [[2, 2]])
    assert got.tolist() == [[0.0, 0.0, -2.0, 0.0]]


def test_nothing_set_changes_nothing() -> None:
    logits = torch.randn(2, 7)
    settings = Settings()
    assert settings.filtered(settings.penalised(logits, [[1], [2]], [[], []])) is logits


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"temperature": -0.1}, "temperature must be a finite number of 0 or more; got -0.1"),
        ({"temperature": math.nan}, "temperature must be"),
        ({"temperature": "hot"}, "temperature must be .* got 'hot'"),
        ({"top_k": 0}, "top_k must be a whole number of 1 or more; got 0"),
        ({"top_k": 1.5}, "top_k must be a whole number"),
        ({"top_p": 0.0}, "top_p must be a finite number above 0 up to 1; got 0.0"),
        ({"top_p": 1.1}, "top_p must be a finite number above 0 up to 1; got 1.1"),
        ({"min_p": -0.5}, "min_p must be a finite number from 0 to 1"),
        ({"typical": 0}, "typical must be a finite number above 0"),
        ({"repetition_penalty": 0.0}, "repetition_penalty must be a finite number above 0"),
        ({"presence_penalty": math.inf}, "presence_penalty must be a finite number"),
        ({"logit_bias": {1: math.nan}}, "logit_bias maps token ids to numbers"),
        ({"logit_bias": {1: math.inf}}, "finite or -inf"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_what_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Settings(**fields)


def test_bias_for_a_token_that_is_not_there() -> None:
    with pytest.raises(InputError, match="token 9 is not in this vocabulary of 9 entries"):
        Settings(logit_bias={9: 1.0}).check_vocabulary(9)
