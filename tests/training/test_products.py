"""Quick products: as exact as float32, and no trace of them outside."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from clearhead.training import products
from clearhead.training.products import onednn_is_quicker, quick_products


def test_products_stay_exact() -> None:
    generator = torch.Generator().manual_seed(7)
    left = torch.randn(127, 131, generator=generator).requires_grad_()
    right = torch.randn(131, 61, generator=generator)
    stacked = torch.randn(3, 67, 131, generator=generator)
    with quick_products():
        found, together = left @ right, stacked @ stacked.mT
        found.sum().backward()  # type: ignore[no-untyped-call]
    wanted = left.detach().double() @ right.double()
    torch.testing.assert_close(found.detach().double(), wanted, atol=1e-4, rtol=0)
    squares = stacked.double() @ stacked.mT.double()
    torch.testing.assert_close(together.double(), squares, atol=1e-4, rtol=1e-5)
    assert left.grad is not None
    torch.testing.assert_close(left.grad, right.sum(1).expand(127, 131), atol=1e-4, rtol=1e-5)


PRODUCTS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "mm": torch.mm,
    "transposed": lambda a, b: a.t().contiguous().t() @ b.t().contiguous().t(),
    "linear": lambda a, b: functional.linear(a, b.t()),
    "linear with a bias": lambda a, b: functional.linear(a, b.t(), b[0]),
    "addmm": lambda a, b: torch.addmm(b[0], a, b),
    "bmm": lambda a, b: torch.bmm(a.expand(2, -1, -1), b.expand(2, -1, -1)),
    "baddbmm": lambda a, b: torch.baddbmm(b[0], a.expand(2, -1, -1), b.expand(2, -1, -1)),
    "einsum": lambda a, b: torch.einsum("ik,kj->ij", a, b),
    "vector": lambda a, b: a @ b[:, 0],
}


@pytest.mark.parametrize("sizes", [(1, 7, 5), (127, 131, 61), (1024, 128, 512), (64, 640, 257)])
@pytest.mark.parametrize("name", PRODUCTS)
def test_no_kind_of_product_is_rounded(name: str, sizes: tuple[int, int, int]) -> None:
    """Rounding to bfloat16 would be an error of some thousandths, in the way back, too."""
    rows, shared, columns = sizes
    generator = torch.Generator().manual_seed(11)
    left = torch.randn(rows, shared, generator=generator).requires_grad_()
    right = torch.randn(shared, columns, generator=generator).requires_grad_()
    exact = [one.detach().double().requires_grad_() for one in (left, right)]
    with quick_products():
        found = PRODUCTS[name](left, right)
        found.square().sum().backward()  # type: ignore[no-untyped-call]
    wanted = PRODUCTS[name](*exact)
    wanted.square().sum().backward()  # type: ignore[no-untyped-call]
    for ours, theirs in ((found, wanted), (left.grad, exact[0].grad), (right.grad, exact[1].grad)):
        assert ours is not None and theirs is not None
        largest = float(theirs.detach().abs().max())
        assert float((ours.detach().double() - theirs.detach()).abs().max()) <= 1e-5 * max(
            largest, 1.0
        )


@pytest.mark.parametrize("quick", [True, False])
def test_the_setting_is_put_back(quick: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "onednn_is_quicker", lambda: quick)
    matmul = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
    before = matmul.fp32_precision
    with pytest.raises(ZeroDivisionError), quick_products():
        assert (matmul.fp32_precision == "bf16") is quick
        raise ZeroDivisionError
    assert matmul.fp32_precision == before


def test_processors_that_would_round_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: True)
    assert not onednn_is_quicker()


def test_runs_in_two_threads_put_it_back_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that began first may end first."""
    monkeypatch.setattr(products, "onednn_is_quicker", lambda: True)
    matmul = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
    before = matmul.fp32_precision
    first, second = quick_products(), quick_products()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert matmul.fp32_precision == "bf16"
    second.__exit__(None, None, None)
    assert matmul.fp32_precision == before
