from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from clearhead.attention import masks
from clearhead.trace.row_rules import RowRules
from clearhead.trace.watching import log_sum_exp as module
from clearhead.trace.watching.log_sum_exp import later_sums, log_sum_exp, with_sinks
from clearhead.trace.watching.observed_call import ObservedCall


def call(**options: Any) -> ObservedCall:
    torch.manual_seed(0)
    query, key = torch.randn(2, 6, 5, 11), torch.randn(2, 3, 7, 11)
    return ObservedCall(query, key, None, scale=0.3, output=None, **options)


def plain(observed: ObservedCall, visible: Tensor | None = None) -> Tensor:
    key = observed.key.double().repeat_interleave(2, dim=1)
    scores = observed.query.double() @ key.transpose(2, 3) * 0.3
    if observed.softcap is not None:
        scores = observed.softcap * torch.tanh(scores / observed.softcap)
    if observed.bias is not None:
        scores = scores + observed.bias
    if visible is not None:
        scores = scores.masked_fill(~visible, -torch.inf)
    if observed.sinks is not None:
        scores = torch.cat([scores, observed.sinks[:, None, None].expand(2, 6, 5, 1)], dim=3)
    return torch.logsumexp(scores, dim=3)


@pytest.mark.parametrize("block", [module.BLOCK_NUMBERS, 15])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"softcap": 0.7},
        {"bias": torch.linspace(-1, 1, 7).view(1, 1, 1, 7)},
        {"sinks": torch.linspace(0, 2, 6)},
        {"sinks": torch.linspace(0, 2, 6), "softcap": 0.7},
    ],
)
def test_against_float64(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], block: int
) -> None:
    monkeypatch.setattr(module, "BLOCK_NUMBERS", block)
    observed = call(**options)
    assert (log_sum_exp(observed) - plain(observed)).abs().max() < 1e-5


@pytest.mark.parametrize("softcap", [None, 0.7])
def test_causal_rules_align_to_the_end_and_torchs_to_the_start(softcap: float | None) -> None:
    ones = torch.ones(5, 7, dtype=torch.bool)
    ours, torchs = (
        call(rule=masks.causal(), softcap=softcap),
        call(from_start=True, softcap=softcap),
    )
    assert (log_sum_exp(ours) - plain(ours, ones.tril(2))).abs().max() < 1e-5
    assert (log_sum_exp(torchs) - plain(torchs, ones.tril(0))).abs().max() < 1e-5


@pytest.mark.parametrize("softcap", [None, 0.7])
def test_a_row_that_sees_nothing_has_zero(softcap: float | None) -> None:
    mask = torch.ones(1, 1, 5, 7, dtype=torch.bool)
    mask[..., 2, :] = False
    assert log_sum_exp(call(mask=mask, softcap=softcap))[:, :, 2].eq(0).all()


def test_sinks_join_by_hand() -> None:
    found = with_sinks(torch.zeros(1, 2, 1), torch.tensor([0.0, 1.0]))
    assert torch.allclose(found.flatten(), torch.tensor([2.0, 1.0 + torch.e]).log())


def test_a_row_that_sees_nothing_has_its_sink_alone() -> None:
    mask = torch.ones(1, 1, 5, 7, dtype=torch.bool)
    mask[:, :, 2] = False
    sinks = torch.randn(6)
    found = log_sum_exp(call(mask=mask, sinks=sinks))
    assert torch.equal(found[:, :, 2], sinks.expand(2, 6))
    assert (found[:, :, 1] > sinks).all()


def test_the_autocast_of_whoever_asks_first_rounds_nothing() -> None:
    observed = call(softcap=2.0)
    later = later_sums(observed.query, observed.key, RowRules(5, 7), observed)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = later.tensor()
    assert torch.equal(found, log_sum_exp(observed))
