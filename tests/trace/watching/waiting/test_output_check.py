from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from clearhead.attention.call import CAUSAL
from clearhead.trace.watching.log_sum_exp import plain_sums
from clearhead.trace.watching.observed_call import ObservedCall
from clearhead.trace.watching.sample_check import formula_weights
from clearhead.trace.watching.waiting.output_check import compared


def steps(queries: int = 5, keys: int = 11, masked: bool = False) -> ObservedCall:
    """Rows that were computed one after another, of three heads over one."""
    torch.manual_seed(0)
    query, key = torch.randn(2, 3, queries, 7), torch.randn(2, 1, keys, 7)
    value = torch.randn(2, 1, keys, 7)
    mask = torch.arange(keys) < keys - 2
    call = ObservedCall(
        query, key, value, 0.3, None, fused=True, unchecked=True,
        mask=mask[None, None, None] if masked else None, rule=None if masked else CAUSAL,
    )  # fmt: skip
    call.output = formula_weights(call, range(queries)) @ value
    return call


@pytest.mark.parametrize("queries", [1, 5])
def test_rows_that_the_kernel_gives_are_taken_with_their_sums(queries: int) -> None:
    call = steps(queries)
    found = compared(call)
    assert found is not None and found.logsum is not None and not found.unchecked
    assert float((found.logsum - plain_sums(call)).abs().max()) < 1e-5


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("row", [0, 4])
def test_a_row_that_is_off_is_found(masked: bool, row: int) -> None:
    call = steps(masked=masked)
    assert compared(call) is not None and call.output is not None
    call.output[1, 2, row, 3] += 0.01
    assert compared(call) is None


def test_what_is_not_a_number_must_be_none_on_both_sides() -> None:
    call = steps()
    assert call.output is not None
    call.query[0, 1, 2, 3] = torch.nan
    assert compared(call) is None
    call.output[0, 1, 2] = torch.nan
    assert compared(call) is not None


def test_weights_of_the_model_are_compared_themselves() -> None:
    call = steps()
    call.weights = formula_weights(call, range(5))
    assert compared(replace(call, output=None)) is not None
    call.weights = call.weights * 1.01
    assert compared(call) is None


def test_what_was_compared_before_is_taken() -> None:
    call = replace(steps(), unchecked=False, output=None)
    assert compared(call) is call
