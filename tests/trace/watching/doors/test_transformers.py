from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from clearhead.errors import InputError
from clearhead.trace.watching.doors import transformers as door
from clearhead.trace.watching.watchers import collecting


def eager(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, *,
    scaling: float, wrong: float = 1.0,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    weights = torch.softmax(query @ key.transpose(2, 3) * scaling * wrong, dim=3)
    return (weights @ value).transpose(1, 2), weights


def test_an_eager_function_is_described_by_its_arguments_or_its_weights() -> None:
    torch.manual_seed(0)
    query, key, value = (torch.randn(2, 3, n, 11) for n in (5, 7, 7))
    module = nn.Module().eval()
    with collecting() as observed:
        args = (module, query, key, value, None)
        output, weights = door._described(eager, args, {"scaling": 0.3})
        door._described(eager, args, {"scaling": 0.3, "wrong": 1.2})
    first, second = observed.observed()
    assert first.scale == 0.3 and first.weights is weights and first.output is not None
    assert torch.equal(first.output, output.transpose(1, 2)) and not first.spelled
    assert second.spelled  # its weights are not those of the formula


@pytest.mark.parametrize("name", ["flash_attention_2", "flex_attention", "paged|sdpa"])
def test_kernels_that_cannot_be_observed(name: str) -> None:
    with pytest.raises(InputError, match="which watch cannot see into"):
        door.refuse_kernel(name)


def test_other_kernels_are_fine() -> None:
    for name in (None, "sdpa", "eager"):
        door.refuse_kernel(name)


def test_the_wrapper_is_removed_with_the_last_watch() -> None:
    from transformers.modeling_utils import AttentionInterface

    original = AttentionInterface.get_interface
    door.open_door()
    door.open_door()
    assert AttentionInterface.get_interface is not original
    door.close_door()
    assert AttentionInterface.get_interface is not original
    door.close_door()
    assert AttentionInterface.get_interface is original
