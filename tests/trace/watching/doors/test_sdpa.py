from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from clearhead.trace.watching.doors.sdpa import sdpa
from clearhead.trace.watching.observed_call import ACTIVE, ObservedCall

FUNCTION = functional.scaled_dot_product_attention


@pytest.fixture
def observed(monkeypatch: pytest.MonkeyPatch) -> list[ObservedCall]:
    calls: list[ObservedCall] = []
    monkeypatch.setattr(ACTIVE, "collected", calls)
    return calls


@pytest.mark.parametrize("masked", [False, True])
def test_the_same_bits_and_the_kernels_log_sum_exp(
    observed: list[ObservedCall], masked: bool
) -> None:
    torch.manual_seed(0)
    query, key, value = (torch.randn(2, 3, n, 11) for n in (5, 7, 7))
    mask = torch.ones(5, 7, dtype=torch.bool).tril(2) if masked else None
    output = sdpa(FUNCTION, (query, key, value), {"attn_mask": mask, "scale": 0.3})
    assert torch.equal(output, FUNCTION(query, key, value, attn_mask=mask, scale=0.3))
    [call] = observed
    scores = query.double() @ key.double().transpose(2, 3) * 0.3
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
        assert call.mask is not None and call.mask.shape == (1, 1, 5, 7)
    if call.logsum is not None:
        assert (call.logsum - torch.logsumexp(scores, 3)).abs().max() < 1e-5
    assert call.fused and call.scale == 0.3 and not call.from_start


@pytest.mark.parametrize(
    ("shape", "wanted"),
    [((5, 11), (1, 1, 5, 11)), ((3, 5, 11), (3, 1, 5, 11)), ((2, 7, 3, 5, 11), (14, 3, 5, 11))],
)
def test_other_axes_become_batch_and_head(
    observed: list[ObservedCall], shape: tuple[int, ...], wanted: tuple[int, ...]
) -> None:
    states = torch.randn(*shape)
    mask = torch.ones((3, 5, 5) if len(shape) == 5 else (5, 5), dtype=torch.bool)
    assert sdpa(FUNCTION, (states, states, states, mask), {}).shape == shape
    [call] = observed
    assert call.query.shape == call.key.shape == wanted and call.scale == 11**-0.5
    assert call.mask is not None and call.mask.ndim == 4
