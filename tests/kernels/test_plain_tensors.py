"""Which tensors a kernel may read."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from clearhead.kernels.plain_tensors import (
    has_tangents,
    is_differentiated,
    is_float,
    is_plain,
    is_recorded,
    is_transformed,
)


@pytest.mark.parametrize(
    ("tensor", "expected"),
    [
        (torch.zeros(2, 3), True),
        (torch.nn.Parameter(torch.zeros(2, 3)), True),
        (torch.zeros(2, 3).double(), False),
        (torch.zeros(2, 3).bfloat16(), False),
        (torch.zeros(2, 3, device="meta"), False),
        (torch.zeros(3, 2).T, False),
        (torch.zeros(2, 6)[:, ::2], False),
        (torch.zeros(4, 3)[::2], True),
    ],
)
def test_float32_side_by_side(tensor: Tensor, expected: bool) -> None:
    assert is_float(tensor) == expected


def test_gradients() -> None:
    learned = torch.zeros(3, requires_grad=True)
    assert is_differentiated(torch.zeros(3), learned)
    assert not is_plain(learned)
    with torch.no_grad():
        assert not is_differentiated(learned)
        assert is_plain(learned)


@pytest.mark.filterwarnings("ignore:`torch.jit")
def test_transforms() -> None:
    found: dict[str, tuple[bool, bool]] = {}

    def noted(name: str, x: Tensor) -> Tensor:
        found[name] = (is_transformed(), has_tangents())
        return x.sum()

    x = torch.ones(3)
    torch.func.vmap(lambda row: noted("vmap", row))(torch.ones(2, 3))
    torch.func.grad(lambda row: noted("grad", row))(x)
    torch.func.jvp(lambda row: noted("jvp", row), (x,), (x,))
    noted("plain", x)
    assert found == {
        "vmap": (True, False),
        "grad": (True, False),
        "jvp": (True, True),
        "plain": (False, False),
    }


@pytest.mark.filterwarnings("ignore:`torch.jit")
def test_tracing_is_recorded() -> None:
    found: list[bool] = []

    def traced(x: Tensor) -> Tensor:
        found.append(is_recorded())
        return x + 1

    torch.jit.trace(traced, torch.zeros(3), check_trace=False)  # type: ignore[no-untyped-call]
    assert found == [True]
    assert not is_recorded()
