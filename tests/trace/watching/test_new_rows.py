from __future__ import annotations

from dataclasses import replace

import torch

from clearhead.trace.chunks import LaterSums
from clearhead.trace.proving.probes import project
from clearhead.trace.watching.mask_rules import RuleCache
from clearhead.trace.watching.new_rows import NewRows, has_nan, new_rows
from clearhead.trace.watching.observed_call import ObservedCall
from tests.trace.watching.test_recorder import call


def made(observed: ObservedCall, chosen: list[int] | None = None) -> NewRows:
    rules = RuleCache().of(observed)
    return new_rows(observed, rules, False, chosen, 1, values=False)


def test_sums_that_follow_from_the_rules_are_computed_later() -> None:
    rows = made(call())
    assert isinstance(rows.logsum, LaterSums) and rows.past == 2
    scores = call().query @ call().key.repeat_interleave(2, 1).mT * 0.3
    assert (rows.logsum.tensor() - torch.logsumexp(scores, -1)).abs().max() < 1e-5


def test_chosen_heads_have_the_keys_that_they_share() -> None:
    rows = made(call(), [5, 0])
    assert torch.equal(rows.query, call().query[:, [5, 0]])
    assert torch.equal(rows.key, call().key[:, [2, 0]])
    assert rows.value_probe is not None and rows.value_probe.shape == (2, 2, 7, 4)


def test_rows_that_are_not_numbers_in_the_model_are_none_here() -> None:
    plain = replace(call(), dropout=0.0)
    weights, output = torch.rand(2, 6, 5, 7), torch.rand(2, 6, 5, 13)
    weights[1, 2, 3], output[1, 2, 3] = torch.nan, torch.nan
    rows = made(replace(plain, weights=weights, output=output))
    assert isinstance(rows.logsum, torch.Tensor)
    assert rows.logsum.isnan().nonzero().tolist() == [[1, 2, 3]]


def test_infinities_are_numbers() -> None:
    assert not has_nan(torch.tensor([torch.inf, -torch.inf])) and not has_nan(torch.ones(3))
    assert has_nan(torch.tensor([1.0, torch.nan]))
    assert not has_nan(torch.full((3,), 60_000.0).half())  # though their sum is none


def test_under_dropout_the_projections_are_those_of_the_models_own_weights() -> None:
    own, value = torch.softmax(torch.randn(2, 6, 5, 7), -1), torch.randn(2, 3, 7, 13)
    plain = replace(call(), dropout=0.5, output=torch.randn(2, 6, 5, 13), value=value)
    rows = made(replace(plain, undropped=own))
    output = own @ value.repeat_interleave(2, 1)
    assert rows.output_probe is not None
    assert (rows.output_probe - project(output)).abs().max() < 1e-5
