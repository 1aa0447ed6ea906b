"""Functions before torch's kernels are passed by, and nothing else changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from clearhead.trace.watching.doors.passing_by import may_pass, pass_by_hooks

HEARD: list[Any] = []


@pytest.fixture
def hooked() -> Iterator[None]:
    """Two kernels have a function before them."""
    library = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
    after = torch._C._dispatch_keyset_full_after(torch._C.DispatchKey.BackendSelect)
    for name in ("_scaled_dot_product_flash_attention_for_cpu", "_softmax"):
        handle = getattr(torch.ops.aten, name).default._handle

        def run(keyset: Any, *args: Any, handle: Any = handle, **kwargs: Any) -> Any:
            HEARD.append(handle)
            return handle.redispatch_boxed(keyset & after, *args, **kwargs)

        library.impl(name, run, "BackendSelect", with_keyset=True)  # type: ignore[no-untyped-call]
    HEARD.clear()
    yield
    library._destroy()  # type: ignore[no-untyped-call]


def attend(query: Tensor) -> tuple[Tensor, ...]:
    """Both kernels, and operations without any tensor."""
    fused = functional.scaled_dot_product_attention(query, query, query)
    rows = torch.arange(query.shape[2], dtype=query.dtype) + torch.zeros(query.shape[2])
    return fused, torch.softmax(query @ query.mT + rows, dim=-1), torch.full((2, 3), 0.5)


@pytest.mark.usefixtures("hooked")
@pytest.mark.parametrize("grad", [False, True])
def test_kernels_are_called_without_the_functions_before_them(grad: bool) -> None:
    query = torch.randn(2, 3, 5, 7, requires_grad=grad)
    plain = attend(query)
    assert len(HEARD) == 2
    pass_by_hooks(True)
    try:
        assert not may_pass()
        passed = attend(query)
    finally:
        pass_by_hooks(False)
    assert len(HEARD) == 2 and may_pass()
    assert all(torch.equal(one, other) for one, other in zip(plain, passed, strict=True))
    if grad:
        ours, theirs = (torch.autograd.grad(found[0].sum(), query)[0] for found in (passed, plain))
        assert torch.equal(ours, theirs)
    attend(query)
    assert len(HEARD) == 4


def test_not_where_somebody_else_listens() -> None:
    class Mode(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return func(*args, **(kwargs or {}))

    with Mode():  # type: ignore[no-untyped-call]
        assert not may_pass()
    assert may_pass()
