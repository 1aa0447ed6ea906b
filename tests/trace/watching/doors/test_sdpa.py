from __future__ import annotations

import torch

from clearhead.trace.watching.doors.sdpa import flash_call, other_device_call


def test_arguments_that_are_not_given_have_their_defaults() -> None:
    query, key = torch.zeros(2, 3, 5, 16), torch.zeros(2, 3, 7, 16)
    logsum, mask = torch.zeros(2, 3, 5), torch.zeros(5, 7)
    given = {"query": query, "key": key, "value": key, "attn_mask": mask}
    options = {"is_causal": True, "scale": 0.3, "dropout_p": 0.1}
    first = flash_call(given, (query, logsum))
    second = other_device_call(given | options, (query, None))
    assert first.scale == 0.25 and not first.from_start and first.logsum is logsum and first.fused
    assert first.mask is not None and first.mask.shape == (1, 1, 5, 7)
    assert (second.scale, second.from_start, second.dropout, second.logsum) == (
        0.3,
        True,
        0.1,
        None,
    )
