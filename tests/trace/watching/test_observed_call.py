from __future__ import annotations

from typing import Any

import torch

from clearhead.attention import masks
from clearhead.trace.watching.observed_call import ObservedCall, as_added


def call(**options: Any) -> ObservedCall:
    query, key = torch.zeros(1, 2, 3, 5), torch.zeros(1, 2, 7, 5)
    return ObservedCall(query, key, None, scale=1.0, output=None, **options)


def test_everything_added_to_the_scores_of_some_rows() -> None:
    assert call().sizes == (3, 7) and call().added(range(3)) is None
    bias = torch.arange(7.0).view(1, 1, 1, 7)
    mask = torch.ones(1, 1, 3, 7, dtype=torch.bool).tril(4)
    found = call(bias=bias, mask=mask).added(range(1, 2))
    low = -torch.inf
    assert found is not None and found.tolist() == [[[[0, 1, 2, 3, 4, 5, low]]]]
    ours, torchs = call(rule=masks.causal()), call(from_start=True)
    assert ours.added(range(1, 2)).flatten().tolist() == [0] * 6 + [low]  # type: ignore[union-attr]
    assert torchs.added(range(1, 2)).flatten().tolist() == [0] * 2 + [low] * 5  # type: ignore[union-attr]


def test_numbers_stay_and_booleans_become_numbers() -> None:
    assert as_added(torch.tensor([True, False]), torch.float64).tolist() == [0.0, -torch.inf]
    assert as_added(torch.tensor([1.5]), torch.float64).dtype == torch.float32


def test_hidden_scores_become_the_number_that_fills_them() -> None:
    mask, scores = torch.ones(1, 1, 3, 7, dtype=torch.bool).tril(), torch.ones(1, 2, 2, 7)
    filled = call(mask=mask, fill=-1e4).scored(scores, range(1, 3))
    assert filled[0, 1, 0].tolist() == [1, 1] + [-1e4] * 5
    assert (
        call(mask=mask).scored(scores, range(1, 3))[0, 0, 0].tolist() == [1, 1] + [-torch.inf] * 5
    )
