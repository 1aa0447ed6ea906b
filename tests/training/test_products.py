"""Quick products: as exact as float32, and no trace of them outside."""

from __future__ import annotations

import pytest
import torch

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
