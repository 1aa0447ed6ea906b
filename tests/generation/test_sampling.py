"""Sampling functions against transformers' on random logits, and against arithmetic."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given
from torch import Tensor
from transformers.generation import logits_process as theirs

from clearhead.generation import sampling

SEEDS = range(7)


def random_logits(seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(5, 211, generator=generator) * (1 + seed)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("ours", "reference"),
    [
        (lambda x: sampling.with_temperature(x, 0.7), theirs.TemperatureLogitsWarper(0.7)),
        (lambda x: sampling.keep_top_k(x, 13), theirs.TopKLogitsWarper(13)),
        (lambda x: sampling.keep_top_k(x, 500), theirs.TopKLogitsWarper(500)),
        (lambda x: sampling.keep_top_p(x, 0.9), theirs.TopPLogitsWarper(0.9)),
        (lambda x: sampling.keep_top_p(x, 0.3), theirs.TopPLogitsWarper(0.3)),
        (lambda x: sampling.keep_top_p(x, 0.001), theirs.TopPLogitsWarper(0.001)),
        (lambda x: sampling.keep_min_p(x, 0.05), theirs.MinPLogitsWarper(0.05)),
        (lambda x: sampling.keep_min_p(x, 1.0), theirs.MinPLogitsWarper(1.0)),
        (lambda x: sampling.keep_typical(x, 0.9), theirs.TypicalLogitsWarper(0.9)),
        (lambda x: sampling.keep_typical(x, 0.2), theirs.TypicalLogitsWarper(0.2)),
    ],
)
def test_same_as_transformers(ours, reference, seed: int) -> None:  # type: ignore[no-untyped-def]
    logits = random_logits(seed)
    before = logits.clone()
    wanted = reference(None, logits.clone())
    torch.testing.assert_close(ours(logits).log_softmax(-1), wanted.log_softmax(-1))
    assert torch.equal(logits, before)  # pure


def test_filters_after_filters() -> None:
    """What an earlier filter forbids stays forbidden, and the rest is measured among itself."""
    logits = random_logits(2)
    ours = sampling.keep_typical(sampling.keep_top_p(sampling.keep_top_k(logits, 29), 0.8), 0.7)
    wanted = logits
    for warper in (
        theirs.TopKLogitsWarper(29), theirs.TopPLogitsWarper(0.8), theirs.TypicalLogitsWarper(0.7)
    ):  # fmt: skip
        wanted = warper(None, wanted)
    torch.testing.assert_close(ours, wanted)


def test_by_hand() -> None:
    logits = torch.tensor([[0.5, 0.25, 0.125, 0.125]]).log()
    kept = {
        "k": sampling.keep_top_k(logits, 2),
        "p": sampling.keep_top_p(logits, 0.7),
        "min": sampling.keep_min_p(logits, 0.4),
        "ties": sampling.keep_top_p(logits, 0.8),  # of the two last ones, the first
    }
    there = {name: (row[0] > -math.inf).tolist() for name, row in kept.items()}
    assert there == {
        "k": [True, True, False, False],
        "p": [True, True, False, False],
        "min": [True, True, False, False],
        "ties": [True, True, True, False],
    }


@given(st.floats(0.01, 0.99), st.integers(0, 1000))
def test_nucleus_is_the_smallest_that_has_the_mass(mass: float, seed: int) -> None:
    logits = random_logits(seed % 10)[seed % 5 :][:1]
    shares = logits.double().softmax(-1)[0]
    inside = shares[sampling.keep_top_p(logits, mass)[0] > -math.inf]
    assert inside.sum() >= mass - 1e-9
    assert inside.sum() - inside.min() < mass + 1e-9
    assert inside.min() >= shares.sort(descending=True).values[len(inside) - 1]


def test_draws_follow_the_distribution() -> None:
    """Frequencies of 20,000 draws lie within five standard deviations of softmax."""
    generator = torch.Generator().manual_seed(3)
    logits = torch.randn(1, 17, generator=generator)
    count = 20_000
    uniform = torch.rand(count, generator=generator, dtype=torch.float64).tolist()
    tokens = sampling.sample(logits.expand(count, -1), uniform)
    seen = torch.bincount(torch.tensor(tokens), minlength=17) / count
    wanted = logits.double().softmax(-1)[0]
    spread = (wanted * (1 - wanted) / count).sqrt()
    assert ((seen - wanted).abs() <= 5 * spread).all()


def test_what_is_forbidden_is_never_drawn() -> None:
    logits = torch.tensor([[-math.inf, 0.0, -math.inf, 0.0, -math.inf]])
    ends = [0.0, 0.25, 0.4999999, 0.5, 0.75, 1 - 2**-53]
    assert sampling.sample(logits.expand(6, -1), ends) == [1, 1, 1, 3, 3, 3]


def test_greedy_choice() -> None:
    assert sampling.greedy(torch.tensor([[0.0, 3.0, 1.0], [5.0, 3.0, 1.0]])) == [1, 0]
