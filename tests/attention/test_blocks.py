"""Blocks: the same numbers however queries are cut, and never a whole map in memory."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import clearhead as ch
from clearhead.attention import blocks, masks
from clearhead.attention.call import attention_call
from tests.attention.test_dot_product import GRID, LONGER, agree, options_of, tensors


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


def test_the_blocks_of_a_window_reach_no_further() -> None:
    """Worked by hand: 5 queries at the end of 7 keys, each sees its own key and the one before."""
    states = torch.zeros(1, 1, 7, 2)
    call = attention_call(states[:, :, :5], states, states, None, None, True, 2, None, None, None)
    columns, added = blocks.added_to_scores(call, range(1, 3))
    assert columns == range(2, 5)
    assert added is not None
    assert added.isneginf().tolist() == [[False, False, True], [True, False, False]]


def test_one_block_is_what_the_kernel_masks_itself() -> None:
    states = torch.zeros(1, 1, 5, 2)

    def one(queries: int, causal: bool, bias: Tensor | None = None) -> bool:
        query = states[:, :, :queries]
        call = attention_call(query, states, states, None, bias, causal, None, None, None, None)
        return blocks.is_one_block(call)

    assert one(5, causal=False) and one(5, causal=True) and one(3, causal=False)
    assert not one(3, causal=True)
    assert not one(5, causal=False, bias=torch.zeros(5, 5))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("numbers", [1 << 22, 600])
def test_larger_sizes_in_several_blocks(numbers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_NUMBERS", numbers)
    monkeypatch.setattr(blocks, "SHORTEST_BLOCK", 13)
    monkeypatch.setattr(blocks, "LONGEST_BLOCK", 29)
    for row in GRID[::11]:
        agree(*tensors(LONGER), **options_of(LONGER, torch.float32, *row))


def test_blocks_as_they_are() -> None:
    """Sizes at which blocks occur without being asked for."""
    for sizes in ((700, 700, 2, 2, 8, 8), (600, 1300, 2, 1, 8, 4)):
        for options in (
            {"causal": True, "window": 150},
            {"window": 37, "sinks": torch.randn(2, requires_grad=True)},
            {"causal": True, "softcap": 2.0},
            {"causal": True, "mask": masks.lengths(torch.tensor([sizes[1] - 90, sizes[1]]))},
        ):
            agree(*tensors(sizes), **options)


class LargestTensor(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Remembers how many numbers the largest tensor had that any operation made."""

    numbers = 0

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        for made in result if isinstance(result, tuple | list) else (result,):
            if isinstance(made, Tensor):
                stored = made.untyped_storage().nbytes() // made.element_size()
                self.numbers = max(self.numbers, stored)
        return result


@pytest.mark.parametrize(
    "options",
    [
        {"causal": True, "window": 64},
        {"window": 64, "sinks": torch.zeros(1)},
        {"causal": True, "window": 64, "softcap": 2.0},
        {"causal": True, "mask": masks.lengths(torch.tensor([4000]))},
        {"causal": True, "softcap": 2.0},
    ],
    ids=lambda options: "+".join(options),
)
def test_no_whole_map_is_ever_held(options: dict[str, Any]) -> None:
    length = 4096
    query, key, value = (torch.randn(1, 1, length, 8, requires_grad=True) for _ in range(3))
    with LargestTensor() as largest:  # type: ignore[no-untyped-call]
        ch.attention(query, key, value, **options).sum().backward()  # type: ignore[no-untyped-call]
    limit = length * 16 * 8 if "window" in options else blocks.BLOCK_NUMBERS
    assert length * 8 <= largest.numbers <= limit < length * length


def test_the_plain_path_does_hold_it() -> None:
    """Or the test above would prove nothing."""
    states = torch.randn(1, 1, 512, 8)
    with LargestTensor() as largest:  # type: ignore[no-untyped-call]
        ch.attention_steps(states, states, states, window=64)
    assert largest.numbers >= 512 * 512
