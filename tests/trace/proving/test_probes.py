from __future__ import annotations

import pytest
import torch

from clearhead.trace.proving.probes import PROBES, project


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_a_projection_is_linear_and_does_not_depend_on_the_layout(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    value, weights = torch.randn(2, 3, 7, 11, dtype=dtype), torch.rand(2, 3, 5, 7)
    wide = torch.promote_types(dtype, torch.float32)
    found = project(value)
    assert found.shape == (2, 3, 7, PROBES) and found.dtype == wide
    swapped = value.transpose(1, 2).contiguous().transpose(1, 2)
    torch.testing.assert_close(project(swapped), found)
    mixed = weights.to(wide) @ value.to(wide)
    torch.testing.assert_close(project(mixed), weights.to(wide) @ found)


def test_any_change_of_one_number_changes_the_projection() -> None:
    value = torch.zeros(1, 1, 1, 13)
    for place in range(13):
        changed = value.clone()
        changed[..., place] = 1
        assert project(changed).abs().sum() > 0.9
