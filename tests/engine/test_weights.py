"""Weights in tiles: a file's blocks as they are, floats in 4 bits where that loses nothing."""

from __future__ import annotations

import ctypes

import pytest
import torch

from clearhead.checkpoints.gguf.quantised import QuantisedTensor
from clearhead.engine.engine import engine_runs_here
from clearhead.engine.kernels.layouts import PIECES, Layout
from clearhead.engine.weights import (
    check_weights_memory,
    heads_padded,
    pack_matrix,
    padded,
    structures,
)
from clearhead.errors import InputError
from tests.shared.gguf_blocks import random_blocks

pytestmark = pytest.mark.skipif(not engine_runs_here(), reason="no OpenMP or half precision here")


def four_bit_weights(rows: int, groups: int) -> torch.Tensor:
    """Weights as a Q4_1 file gives them: 16 levels of half-precision scale and minimum."""
    torch.manual_seed(3)
    levels = torch.randint(0, 16, (rows, groups, 32)).float()
    levels[..., 7], levels[..., 19] = 0, 15
    scale = torch.rand(rows, groups, 1).half().float() / 16
    minimum = -(torch.rand(rows, groups, 1) / 2).half().float()
    return (levels * scale.half().float() + minimum).flatten(1)


def test_weights_of_16_levels_stay_as_they_are() -> None:
    weight = four_bit_weights(64, 3)
    packed = pack_matrix(weight)
    assert packed.kind == "Q4_1"
    torch.testing.assert_close(packed.dequantised(), weight, rtol=0, atol=1e-6)
    assert packed.bytes == 64 * 3 * 20  # 32 weights in 16 bytes, and 4 of scale and minimum


def test_a_single_other_number_makes_it_eight_bits() -> None:
    weight = four_bit_weights(64, 3)
    weight[63, 95] += 0.01
    packed = pack_matrix(weight)
    assert packed.kind == "Q8_0"
    assert packed.bytes == 64 * 3 * 34
    largest = weight.view(64, 3, 32).abs().amax(-1, keepdim=True)
    off = (packed.dequantised() - weight).view(64, 3, 32).abs()
    assert bool((off <= largest / 127 * 0.56).all())  # half a step, and the scale's rounding


def test_rows_and_columns_are_padded_with_zeros() -> None:
    torch.manual_seed(4)
    weight, bias = torch.randn(37, 41), torch.randn(37)
    packed = pack_matrix(weight, bias)
    assert packed.dequantised().shape == (64, 64)
    assert packed.dequantised()[37:].abs().sum() == packed.dequantised()[:, 41:].abs().sum() == 0
    assert packed.bias is not None
    assert torch.equal(packed.bias[:37], bias)


def test_matrices_whose_rows_follow_one_another() -> None:
    matrices = [pack_matrix(torch.randn(rows, 32)) for rows in (32, 64, 32)]
    first, second, third = structures(matrices)
    assert [each.tiles for each in (first, second, third)] == [2, 4, 2]
    assert [each.all_tiles for each in (first, second, third)] == [8, 6, 2]
    assert first.next == ctypes.addressof(second) and second.next == ctypes.addressof(third)
    assert third.next == 0


def test_zeros_and_one_number_for_all() -> None:
    assert pack_matrix(torch.zeros(32, 32)).dequantised().abs().sum() == 0
    assert torch.equal(
        pack_matrix(torch.full((32, 32), 0.5)).dequantised(), torch.full((32, 32), 0.5)
    )


def test_heads_are_padded_one_by_one() -> None:
    order = heads_padded(2, 3, 5)
    assert order.tolist() == [0, 1, 2, -1, -1, 3, 4, 5, -1, -1]
    weight, bias = torch.randn(6, 32), torch.randn(6)
    packed = pack_matrix(weight, bias, order)
    found = packed.dequantised()
    assert torch.equal(found[[0, 1, 2, 5, 6, 7]], pack_matrix(weight).dequantised()[:6])
    assert not found[[3, 4, 8, 9]].any() and not found[10:].any()
    assert packed.bias is not None
    assert packed.bias[:10].tolist() == [*bias[:3].tolist(), 0, 0, *bias[3:].tolist(), 0, 0]
    assert padded(torch.ones(2, 2), 2, 3).tolist() == [[1, 1, 0], [1, 1, 0]]


@pytest.mark.parametrize("kind", PIECES)
def test_blocks_of_a_file_stay_as_they_are(kind: str) -> None:
    layout = Layout.of(kind)
    columns = 2 * max(layout.length, 32)
    stored = random_blocks(kind, 37, columns)
    order = torch.randperm(37)
    packed = pack_matrix(QuantisedTensor(stored, kind, order))
    assert packed.kind == kind and packed.groups == columns // 32
    assert packed.bytes == 64 * stored.shape[1]  # rounded up to 64 rows, not a byte besides
    assert torch.equal(packed.blocks()[:37], stored[order])
    wanted = QuantisedTensor(stored, kind, order).floats()
    assert torch.equal(packed.dequantised()[:37], wanted)
    assert not packed.dequantised()[37:].any()


def test_single_numbers_fill_up_with_zeros() -> None:
    weight = torch.randn(5, 44)
    packed = pack_matrix(QuantisedTensor(weight.half().view(torch.uint8), "F16"))
    assert torch.equal(packed.dequantised()[:5, :44], weight.half().float())
    assert not packed.dequantised()[:, 44:].any()


def test_codes_become_bytes_without_loss() -> None:
    stored = random_blocks("IQ4_NL", 16, 64)
    packed = pack_matrix(QuantisedTensor(stored, "IQ4_NL"))
    assert packed.kind == "Q8_0"
    assert torch.equal(packed.dequantised()[:16], QuantisedTensor(stored, "IQ4_NL").floats())


def test_kinds_without_products_are_quantised_to_eight_bits() -> None:
    stored = random_blocks("IQ4_XS", 32, 256)
    weight = QuantisedTensor(stored, "IQ4_XS")
    packed = pack_matrix(weight)
    assert packed.kind == "Q8_0"
    assert (packed.dequantised() - weight.floats()).abs().max() < 0.01 * weight.floats().abs().max()


@pytest.mark.parametrize(
    ("dtype", "kind"), [(torch.bfloat16, "BF16"), (torch.float16, "F16"), (torch.float32, "Q8_0")]
)
def test_sixteen_bits_stay_as_they_are(dtype: torch.dtype, kind: str) -> None:
    torch.manual_seed(7)
    weight = torch.randn(37, 41).to(dtype)
    for given in (weight, weight.float()):  # also as files are loaded
        packed = pack_matrix(given)
        assert packed.kind == kind
        found = packed.dequantised()[:37, :41]
        assert torch.equal(found, weight.float()) == (kind != "Q8_0")
        assert pack_matrix(given, eight_bits=True).kind == "Q8_0"


def test_weights_that_do_not_fit_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    model = torch.nn.Linear(640, 1000, bias=False)
    check_weights_memory(model)
    monkeypatch.setattr("os.sysconf", lambda name: 600 if name == "SC_PHYS_PAGES" else 1000)
    with pytest.raises(InputError, match=r"needs 0.0 GB for the weights .* has 0.0 GB"):
        check_weights_memory(model)
