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


TINY = (5e-324, 1e-320, 1e-300, 1e-45, 1e-40, 1e-30)
HUGE = (1e30, 1e39, 1e300, 1.7e308)
LOGITS = torch.randn(3, 101, generator=torch.Generator().manual_seed(2)) * 4


@pytest.mark.parametrize("temperature", TINY)
def test_the_coldest_temperature_takes_the_likeliest_token(temperature: float) -> None:
    found = Settings(temperature=temperature).filtered(LOGITS).softmax(-1)
    assert torch.equal(found, torch.zeros_like(LOGITS).scatter(1, LOGITS.argmax(1)[:, None], 1.0))


@pytest.mark.parametrize("temperature", HUGE)
def test_the_hottest_temperature_makes_all_allowed_tokens_alike(temperature: float) -> None:
    allowed = LOGITS.clone()
    allowed[:, 7] = -math.inf
    found = Settings(temperature=temperature).filtered(allowed).softmax(-1)
    wanted = torch.full_like(LOGITS, 1 / 100)
    wanted[:, 7] = 0.0
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("name", ["top_p", "typical"])
@pytest.mark.parametrize("mass", TINY)
@pytest.mark.parametrize("logits", [LOGITS, torch.zeros(3, 101)], ids=["random", "alike"])
def test_the_smallest_mass_keeps_a_token(name: str, mass: float, logits: torch.Tensor) -> None:
    given: dict[str, Any] = {name: mass}
    found = Settings(**given).filtered(logits)
    kept = (found > -math.inf).sum(1)
    assert bool((kept >= 1).all())
    if logits is LOGITS:
        assert kept.tolist() == [1, 1, 1]


@pytest.mark.parametrize("number", [*HUGE, *(-number for number in HUGE)])
@pytest.mark.parametrize("name", ["presence_penalty", "frequency_penalty"])
def test_penalties_that_float32_cannot_hold(name: str, number: float) -> None:
    given: dict[str, Any] = {name: number}
    found = Settings(**given).penalised(LOGITS[:1], [[1]], [[5]])[0]
    assert found.argmax() == (5 if number < 0 else LOGITS[0].argmax())
    assert (found.softmax(-1)[5] == 0) == (number > 0)


@pytest.mark.parametrize("number", [*TINY[2:], *HUGE])
def test_repetition_penalties_that_float32_cannot_hold(number: float) -> None:
    logits = torch.tensor([[3.0, 2.0, -1.0, -2.0]])
    found = Settings(repetition_penalty=number).penalised(logits, [[1, 2]], [[]])[0].tolist()
    assert found == pytest.approx([3.0, 2.0 / number, -1.0 * number, -2.0])


@pytest.mark.parametrize(
    ("fields", "warper"),
    [
        ({"top_k": 2}, theirs.TopKLogitsWarper(2, min_tokens_to_keep=7)),
        ({"top_p": 0.01}, theirs.TopPLogitsWarper(0.01, min_tokens_to_keep=7)),
        ({"min_p": 0.9}, theirs.MinPLogitsWarper(0.9, min_tokens_to_keep=7)),
        ({"typical": 0.01}, theirs.TypicalLogitsWarper(0.01, min_tokens_to_keep=7)),
    ],
)
def test_the_fewest_tokens_that_are_kept(fields: dict[str, Any], warper: Any) -> None:
    found = Settings(min_tokens_to_keep=7, **fields).filtered(LOGITS)
    torch.testing.assert_close(found, warper(None, LOGITS.clone()))
    assert (found > -math.inf).sum(1).tolist() == [7, 7, 7]
    everything = Settings(min_tokens_to_keep=10**30, **fields).filtered(LOGITS)
    assert torch.equal(everything, LOGITS)
