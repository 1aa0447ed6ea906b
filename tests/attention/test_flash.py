"""torch's flash kernel: widths, blocks and sinks."""

from __future__ import annotations

import pytest
import torch

from clearhead.attention.call import attention_call
from clearhead.attention.flash import flash, one_width
from clearhead.attention.steps import steps_of


@pytest.mark.parametrize(("key_dim", "value_dim"), [(5, 5), (7, 3), (3, 7)])
def test_widths_become_one(key_dim: int, value_dim: int) -> None:
    query, key = torch.randn(2, 3, 5, key_dim), torch.randn(2, 3, 11, key_dim)
    value = torch.randn(2, 3, 11, value_dim)
    call = attention_call(query, key, value, None, None, False, None, None, None, None)
    padded = one_width(call)
    wide = max(key_dim, value_dim)
    assert padded.query.shape[3] == padded.key.shape[3] == padded.value.shape[3] == wide
    output, logsum = flash(padded)
    torch.testing.assert_close(output[..., :value_dim], steps_of(call).output)
    assert not output[..., value_dim:].any()
    scores = query @ key.mT * key_dim**-0.5
    torch.testing.assert_close(logsum, scores.logsumexp(-1))


def test_numbers_of_a_vector_are_laid_side_by_side() -> None:
    query = torch.randn(2, 3, 7, 5).mT
    call = attention_call(query, query, query, None, None, False, None, None, None, None)
    assert query.stride(3) != 1
    assert one_width(call).query.stride(3) == 1
    torch.testing.assert_close(flash(one_width(call))[0], steps_of(call).output)


def test_the_logsum_has_no_sink_in_it_and_the_output_has() -> None:
    query, sinks = torch.randn(2, 3, 5, 7), torch.randn(3)
    call = attention_call(query, query, query, None, None, True, None, None, None, sinks)
    output, logsum = flash(one_width(call))
    scores = (query @ query.mT * 7**-0.5).masked_fill(torch.ones(5, 5).triu(1).bool(), -torch.inf)
    torch.testing.assert_close(logsum, scores.logsumexp(-1))
    torch.testing.assert_close(output, steps_of(call).output)
