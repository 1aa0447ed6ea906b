from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from clearhead.attention.dot_product import attention
from clearhead.attention.observers import OBSERVERS
from clearhead.trace.watching.doors import own
from clearhead.trace.watching.watchers import Calls, collecting


@pytest.fixture
def observed() -> Iterator[Calls]:
    OBSERVERS.watching = (own.own_call,)
    with collecting() as calls:
        yield calls
    OBSERVERS.watching = ()


def test_a_call_of_ours_is_described(observed: Calls) -> None:
    torch.manual_seed(0)
    query, key, value = torch.randn(2, 6, 5, 11), torch.randn(2, 3, 7, 11), torch.randn(2, 3, 7, 13)
    output = attention(query, key, value, causal=True, scale=0.3, sinks=torch.zeros(6))
    [call] = observed.observed()
    assert call.scale == 0.3 and call.sizes == (5, 7) and call.output is not None
    assert torch.equal(call.output, output) and torch.equal(call.key, key)
    assert call.sinks is not None and call.rule is not None


def test_an_empty_call_is_not_reported(observed: Calls) -> None:
    attention(torch.zeros(1, 1, 0, 3), torch.zeros(1, 1, 2, 3), torch.zeros(1, 1, 2, 3))
    assert observed.observed() == []
