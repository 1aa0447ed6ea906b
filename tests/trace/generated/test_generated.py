"""A few hundred generated attentions; ``python -m tests.trace.generated`` tries any number."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import jaxtyping
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trace.generated.known import KNOWN
from tests.trace.generated.runs import Case
from tests.trace.generated.shown import Shown, compared
from tests.trace.generated.spec import DIMENSIONS, Spec, field_of, possible, sampled
from tests.trace.generated.trial import Outcome, expected_calls, tried

GROUP = 30
ALONE = [
    (dimension, choice) for dimension, choices in DIMENSIONS.items() for choice in set(choices)
]


@pytest.fixture(scope="module", autouse=True)
def as_users_run_it() -> Iterator[None]:
    """Shapes are not checked at every call, and one thread computes: hundreds of tiny models."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
    torch.set_num_threads(threads)


def check(outcome: Outcome) -> None:
    assert outcome.good, f"{outcome.kind}: {outcome.detail}\n{outcome.spec}"


@pytest.mark.parametrize("first", range(0, 120, GROUP))
def test_sampled_attentions(first: int) -> None:
    for number in range(first, first + GROUP):
        check(tried(sampled(7, number)))


@pytest.mark.parametrize(("dimension", "choice"), sorted(ALONE, key=str))
def test_every_choice_alone(dimension: str, choice: Any) -> None:
    """What fails here has one cause: the choice."""
    usual = {"mask_step": "pattern", "hidden_by": "pattern", "mask_axes": "pattern"}
    field = field_of(dimension)
    spec = replace(Spec(pattern="causal" if field in usual else "none"), **{field: choice})
    check(tried(possible(spec)))


@settings(max_examples=30)
@given(
    st.fixed_dictionaries(
        {field_of(name): st.sampled_from(choices) for name, choices in DIMENSIONS.items()}
    ),
    st.integers(0, 1 << 20),
)
def test_any_attention(choices: dict[str, Any], seed: int) -> None:
    check(tried(possible(Spec(**choices, seed=seed))))


@pytest.mark.parametrize("cause", KNOWN)
def test_what_failed_once(cause: str) -> None:
    check(tried(possible(KNOWN[cause]), lies=None))


def test_dimensions_are_the_fields_of_a_spec() -> None:
    assert [field_of(name) for name in DIMENSIONS] + ["seed"] == [one.name for one in fields(Spec)]


def test_a_possible_attention_stays_as_it_is() -> None:
    for number in range(500):
        spec = sampled(3, number)
        assert possible(spec) == spec


def test_a_failure_can_be_made_again_from_its_text() -> None:
    spec = sampled(3, 5)
    assert eval(str(spec)) == spec  # our own text


@pytest.mark.parametrize("change", ["heads", "sequences", "rows", "one weight", "a row less"])
def test_wrong_weights_are_noticed(change: str) -> None:
    """The judge: what it compares with cannot be passed by anything else."""
    case = Case(Spec(pattern="causal"))
    (layer,) = expected_calls(case)
    calls = [call for call, _ in layer]
    weights = calls[0].weights.clone()
    assert compared([Shown("L0", "layers.0", "", weights)], calls, []).verdict == "right"
    match change:
        case "heads":
            weights = weights[:, [1, 0, 2]]
        case "sequences":
            weights = weights.flip(0)
        case "rows":
            weights = weights[:, :, [0, 2, 1, 3, 4, 5, 6]]
        case "one weight":
            weights[1, 2, 3, 1] += 3e-6
        case "a row less":
            weights = weights[:, :, :-1]
    verdict = compared([Shown("L0", "layers.0", "", weights)], calls, []).verdict
    assert verdict == ("rows missing" if change == "a row less" else "wrong")


def test_one_head_is_worked_out_by_hand() -> None:
    """The reference against a softmax of two scores."""
    case = Case(Spec(sizes="equal", batch=2))
    ((call, entry),) = expected_calls(case)[0]
    query, keys = entry.query[0, 1, 0].double(), entry.key[0, 1].double()
    scores = [float(query @ key) * entry.scale for key in keys]
    first = 1 / (1 + math.exp(scores[1] - scores[0]))
    assert abs(float(call.weights[0, 1, 0, 0] - first)) < 1e-12
