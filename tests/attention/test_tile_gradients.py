"""The gradient over tiles: against the formula in float64, beside torch's, and to itself."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import clearhead as ch
from clearhead.attention import masks, tile_gradients
from clearhead.attention.masks import WHOLE, Band
from clearhead.attention.tile_gradients import gradients_apply
from clearhead.attention.tile_gradients import tile_gradients as gradients_of
from clearhead.attention.tiles import tile_attention
from clearhead.kernels import loading

pytestmark = pytest.mark.skipif(not gradients_apply(), reason="no OpenMP, numba or FMA here")
CAUSAL = Band(None, 0)
FAR = 1 << 40


def draw(
    *, batch: int = 2, heads: int = 4, kv_heads: int = 2, queries: int = 151, keys: int = 151,
    key_dim: int = 16, value_dim: int = 16,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Gradients, queries, keys and values as projections leave them: heads side by side."""
    generator = torch.Generator().manual_seed(queries * 7919 + keys)

    def states(count: int, head_count: int, width: int) -> Tensor:
        drawn = torch.randn(batch, count, head_count, width, generator=generator)
        return drawn.transpose(1, 2)

    return (
        states(queries, heads, value_dim),
        states(queries, heads, key_dim) * 2,
        states(keys, kv_heads, key_dim),
        states(keys, kv_heads, value_dim),
    )


def by_kernel(
    tensors: tuple[Tensor, ...], band: Band = WHOLE, softcap: float | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Forward and backward by our two kernels."""
    gradient, query, key, value = tensors
    options: dict[str, Any] = {"scale": 0.2, "band": band, "softcap": softcap}
    output, logsum = tile_attention(query, key, value, **options)
    return gradients_of(gradient, query, key, value, output, logsum, **options)


def by_formula(
    tensors: tuple[Tensor, ...], band: Band = WHOLE, softcap: float | None = None
) -> tuple[Tensor, ...]:
    """Every step of the formula in float64, differentiated by autograd."""
    before, after = (FAR if count is None else count for count in band[:2])

    def rule(block: masks.Block) -> Tensor:
        ahead = block.key() - block.standing(band.offset)
        return (ahead >= -before) & (ahead <= after)

    gradient, *inputs = (tensor.double() for tensor in tensors)
    query, key, value = (tensor.requires_grad_() for tensor in inputs)
    steps = ch.attention_steps(query, key, value, mask=masks.Mask(rule), scale=0.2, softcap=softcap)
    return torch.autograd.grad(steps.output, (query, key, value), gradient)


def check(tensors: tuple[Tensor, ...], band: Band = WHOLE, softcap: float | None = None) -> None:
    wanted = by_formula(tensors, band, softcap)
    for got, right in zip(by_kernel(tensors, band, softcap), wanted, strict=True):
        torch.testing.assert_close(got.double(), right, atol=2e-5, rtol=2e-6)


@pytest.mark.parametrize("softcap", [None, 3.0])
@pytest.mark.parametrize(
    "band",
    [WHOLE, CAUSAL, Band(40, 0), Band(17, 30), Band(0, 0), Band(None, 0, 3), Band(5, 2, -60)],
    ids=str,
)
@pytest.mark.parametrize(("queries", "keys"), [(151, 151), (97, 269), (131, 67), (32, 128)])
def test_equals_the_formula(queries: int, keys: int, band: Band, softcap: float | None) -> None:
    check(draw(queries=queries, keys=keys), band, softcap)


@pytest.mark.parametrize("heads", [(1, 1), (3, 3), (9, 3), (5, 1)], ids=str)
@pytest.mark.parametrize("widths", [(64, 64), (1, 8), (20, 40), (67, 24), (128, 32)], ids=str)
def test_any_heads_and_widths(heads: tuple[int, int], widths: tuple[int, int]) -> None:
    sizes = {"heads": heads[0], "kv_heads": heads[1], "key_dim": widths[0], "value_dim": widths[1]}
    check(draw(batch=1, **sizes), CAUSAL)


@settings(max_examples=40, deadline=None)
@given(
    queries=st.integers(1, 300),
    keys=st.integers(8, 300),
    before=st.none() | st.integers(0, 300),
    after=st.none() | st.integers(0, 300),
    offset=st.none() | st.integers(-300, 300),
    threads=st.integers(1, 3),
)
def test_any_band(
    queries: int, keys: int, before: int | None, after: int | None, offset: int | None, threads: int
) -> None:
    usual = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        tensors = draw(batch=1, heads=2, kv_heads=1, queries=queries, keys=keys, value_dim=8)
        check(tensors, Band(before, after, offset))
    finally:
        torch.set_num_threads(usual)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("tokens", [67, 521])
def test_as_exact_as_torchs(tokens: int, causal: bool) -> None:
    """The mean error against float64 is at most that of torch's flash kernel, and a fifth."""
    tensors = draw(queries=tokens, keys=tokens, heads=3, kv_heads=3, key_dim=64, value_dim=64)
    exact = by_formula(tensors, CAUSAL if causal else WHOLE)
    ours = by_kernel(tensors, CAUSAL if causal else WHOLE)
    gradient, *inputs = tensors
    learned = [tensor.clone().requires_grad_() for tensor in inputs]
    query, key, value = learned
    output = torch.nn.functional.scaled_dot_product_attention(
        query, key, value, is_causal=causal, scale=0.2
    )
    theirs = torch.autograd.grad(output, learned, gradient)
    for mine, other, right in zip(ours, theirs, exact, strict=True):
        assert (mine - right).abs().mean() < 1.2 * (other - right).abs().mean()


@pytest.mark.parametrize("band", [WHOLE, CAUSAL, Band(100, 0)], ids=str)
def test_bits_do_not_depend_on_batch_or_threads(band: Band) -> None:
    tensors = draw(batch=3, queries=227, keys=227)
    whole = by_kernel(tensors, band)
    alone = by_kernel(tuple(tensor[1:2] for tensor in tensors), band)
    usual = torch.get_num_threads()
    torch.set_num_threads(usual + 2)
    try:
        more = by_kernel(tensors, band)
    finally:
        torch.set_num_threads(usual)
    for one, other, another in zip(whole, alone, more, strict=True):
        assert torch.equal(one[1:2], other)
        assert torch.equal(one, another)


def test_a_head_does_not_depend_on_its_neighbours() -> None:
    tensors = draw(heads=3, kv_heads=3)
    whole = by_kernel(tensors, CAUSAL)
    alone = by_kernel(tuple(tensor[:, 1:2] for tensor in tensors), CAUSAL)
    for one, other in zip(whole, alone, strict=True):
        assert torch.equal(one[:, 1:2], other)


def test_what_is_hidden_gets_no_gradient() -> None:
    gradient, query, key, value = draw(queries=101, keys=151)
    band = Band(10, 0, 60)  # queries stand at keys 60 … 160: the last ones beyond all keys
    value[:, :, :50], key[:, :, :50] = 3e38, 1e30  # seen by nobody
    to_query, to_key, to_value = by_kernel((gradient, query, key, value), band)
    assert not to_key[:, :, :50].any() and not to_value[:, :, :50].any()
    assert to_key[:, :, 50:].any() and to_query.isfinite().all()
    nothing = Band(10, 0, 400)  # nobody sees anything
    for part in by_kernel((gradient, query, key, value), nothing):
        assert not part.any()


def test_large_scores_give_finite_gradients() -> None:
    """The log-sum-exp is rounded more than the weights can bear: none becomes more than 1."""
    gradient, query, key, value = draw()
    for part in by_kernel((gradient, query * 1e4, key * 1e4, value)):
        assert part.isfinite().all()
    _, _, to_value = by_kernel((gradient, query * 1e4, key * 1e4, value))
    assert to_value.abs().max() < 2 * 151 * gradient.abs().max()


def test_a_gradient_of_any_strides() -> None:
    gradient, query, key, value = draw()
    one = by_kernel((gradient, query, key, value), CAUSAL)
    wide = torch.randn(2, 4, 151, 40)
    wide[..., 7:23] = gradient
    other = by_kernel((wide[..., 7:23], query.contiguous(), key, value.contiguous()), CAUSAL)
    for left, right in zip(one, other, strict=True):
        assert torch.equal(left, right)


def test_gradients_lie_heads_side_by_side() -> None:
    """As the backward of a projection wants them: no copy."""
    for part in by_kernel(draw()):
        assert part.transpose(1, 2).is_contiguous()


def test_refuses_where_it_cannot_be_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    tensors = draw()
    learned = [tensor.clone().requires_grad_() for tensor in tensors[1:]]
    output = ch.attention(*learned, causal=True)
    with_it = torch.autograd.grad(output, learned, tensors[0])
    tile_gradients._kernel.cache_clear()
    monkeypatch.setattr(loading, "torch_threads", lambda: None)
    try:
        assert not gradients_apply()
        with pytest.raises(RuntimeError, match="ask gradients_apply first"):
            by_kernel(tensors)
        output = ch.attention(*learned, causal=True)  # by flash
        assert "Tiled" not in str(output.grad_fn)
        without = torch.autograd.grad(output, learned, tensors[0])
    finally:
        tile_gradients._kernel.cache_clear()
    for left, right in zip(with_it, without, strict=True):
        torch.testing.assert_close(left, right, atol=1e-5, rtol=1e-5)


NARROW = """
import torch, clearhead as ch
query, key, value = torch.randn(3, 1, 2, 211, 24, generator=torch.Generator().manual_seed(0))
def gradients(attend, dtype):
    learned = [part.to(dtype).requires_grad_() for part in (query, key, value)]
    output = attend(*learned, causal=True, softcap=9.0)
    return output, torch.autograd.grad(output.sin().sum(), learned)
output, got = gradients(ch.attention, torch.float32)
assert "Tiled" in str(output.grad_fn), output.grad_fn
exact = gradients(lambda *given, **o: ch.attention_steps(*given, **o).output, torch.float64)[1]
print(max((one - other).abs().max().item() for one, other in zip(got, exact)))
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="names processors of this family")
def test_machines_with_narrower_registers() -> None:
    """numba keeps machine code by processor: that of this one stands beside that of our own."""
    features = "+avx,+avx2,+fma,+f16c,+bmi,+bmi2,+sse4.2,+popcnt"
    told = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": features}
    done = subprocess.run(
        [sys.executable, "-c", NARROW], capture_output=True, text=True, check=True,
        env=os.environ | told,
    )  # fmt: skip
    assert float(done.stdout) < 1e-5
