from __future__ import annotations

from typing import Any

import pytest
import torch

from clearhead.errors import InputError
from clearhead.trace.top_key import TopKey, top_keys
from tests.shared.synthetic import passage


def test_the_largest_weights_come_first_with_their_tokens() -> None:
    weights = torch.tensor([[0.125, 0.5, 0.25, 0.125], [0.0, 0.25, 0.0, 0.75]])
    found = top_keys(weights, 2, passage("a|b|c|d"))
    assert found == [
        [TopKey(1, 0.5, "b"), TopKey(2, 0.25, "c")],
        [TopKey(3, 0.75, "d"), TopKey(1, 0.25, "b")],
    ]
    assert [len(keys) for keys in top_keys(weights, 99, None)] == [4, 4]
    assert top_keys(weights, 1, None)[1] == [TopKey(3, 0.75, None)]


@pytest.mark.parametrize("count", [0, -1, True, 1.5])
def test_a_count_is_wanted(unchecked: None, count: Any) -> None:
    with pytest.raises(InputError, match=r"count .of the top keys. .* of 1 or more"):
        top_keys(torch.ones(1, 2), count, None)
