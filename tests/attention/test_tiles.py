"""Attention over tiles of queries: against the formula in float64, and bit by bit to itself."""

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
from clearhead.attention import masks, tile_function, tiles
from clearhead.attention.masks import WHOLE, Band
from clearhead.attention.tiles import FEWEST_KEYS, FEWEST_QUERIES, tile_attention, tiles_apply
from clearhead.errors import InputError
from clearhead.kernels import loading

pytestmark = pytest.mark.skipif(tiles._kernel() is None, reason="no OpenMP, numba or FMA here")
CAUSAL = Band(None, 0)


def draw(
    *, batch: int = 2, heads: int = 4, kv_heads: int = 2, queries: int = 300, keys: int = 300,
    key_dim: int = 16, value_dim: int = 16,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Queries, keys and values as projections leave them: heads side by side."""
    generator = torch.Generator().manual_seed(queries * 7919 + keys)

    def states(count: int, head_count: int, width: int) -> Tensor:
        drawn = torch.randn(batch, count, head_count, width, generator=generator)
        return drawn.transpose(1, 2)

    return (
        states(queries, heads, key_dim) * 2,
        states(keys, kv_heads, key_dim),
        states(keys, kv_heads, value_dim),
    )


def check(
    tensors: tuple[Tensor, Tensor, Tensor], band: Band = WHOLE, softcap: float | None = None
) -> None:
    """Output and log-sum-exp against every step of the formula in float64."""
    query, key, value = tensors
    far = 1 << 40
    before, after = (far if count is None else count for count in band[:2])

    def rule(block: masks.Block) -> Tensor:
        ahead = block.key() - block.standing(band.offset)
        return (ahead >= -before) & (ahead <= after)

    scale = 0.8 * query.shape[3] ** -0.5
    steps = ch.attention_steps(
        query.double(), key.double(), value.double(),
        mask=masks.Mask(rule), scale=scale, softcap=softcap,
    )  # fmt: skip
    output, logsum = tile_attention(query, key, value, scale=scale, band=band, softcap=softcap)
    wanted = steps.masked.logsumexp(-1)
    wanted = torch.where(wanted.isinf(), 0.0, wanted)  # sees nothing
    torch.testing.assert_close(output.double(), steps.output, atol=5e-6, rtol=0)
    torch.testing.assert_close(logsum.double(), wanted, atol=5e-6, rtol=1e-6)


@pytest.mark.parametrize("softcap", [None, 4.0])
@pytest.mark.parametrize(
    "band",
    [WHOLE, CAUSAL, Band(40, 0), Band(17, 30), Band(0, 0), Band(None, 0, 3), Band(5, 2, -60)],
    ids=str,
)
@pytest.mark.parametrize(
    ("queries", "keys"), [(300, 300), (193, 321), (2, 1025), (257, 200), (64, 256), (31, 193)]
)
def test_equals_the_formula(queries: int, keys: int, band: Band, softcap: float | None) -> None:
    check(draw(queries=queries, keys=keys), band, softcap)


@pytest.mark.parametrize("heads", [(1, 1), (3, 3), (9, 3), (6, 1)], ids=str)
@pytest.mark.parametrize("widths", [(64, 64), (1, 8), (20, 40), (67, 24), (128, 32)], ids=str)
def test_any_heads_and_widths(heads: tuple[int, int], widths: tuple[int, int]) -> None:
    sizes = {"heads": heads[0], "kv_heads": heads[1], "key_dim": widths[0], "value_dim": widths[1]}
    check(draw(batch=1, queries=200, keys=200, **sizes), CAUSAL)


@settings(max_examples=40, deadline=None)
@given(
    queries=st.integers(2, 400),
    keys=st.integers(FEWEST_KEYS, 600),
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


@pytest.mark.parametrize("band", [CAUSAL, Band(100, 0)], ids=str)
def test_a_query_does_not_depend_on_its_neighbours(band: Band) -> None:
    """In another batch, in another place of a tile, after fewer keys to come, on more threads."""
    query, key, value = draw(queries=401, keys=401)
    output, logsum = tile_attention(query, key, value, scale=0.2, band=band)
    second = tile_attention(query[1:], key[1:], value[1:], scale=0.2, band=band)
    assert torch.equal(second[0][0], output[1])
    for first, last in ((0, 401), (3, 299), (300, 401)):
        some = tile_attention(
            query[:, :, first:last], key[:, :, :last], value[:, :, :last], scale=0.2, band=band
        )
        assert torch.equal(some[0], output[:, :, first:last])
        assert torch.equal(some[1], logsum[:, :, first:last])
    usual = torch.get_num_threads()
    torch.set_num_threads(usual + 1)
    try:
        assert torch.equal(tile_attention(query, key, value, scale=0.2, band=band)[0], output)
    finally:
        torch.set_num_threads(usual)


def test_what_is_hidden_does_not_count() -> None:
    query, key, value = draw(batch=1)
    output, logsum = tile_attention(query, key, value, scale=0.2, band=CAUSAL)
    key[:, :, 200:], value[:, :, 200:] = 1e30, -1e30
    again, again_logsum = tile_attention(query, key, value, scale=0.2, band=CAUSAL)
    assert torch.equal(again[:, :, :200], output[:, :, :200])
    assert torch.equal(again_logsum[:, :, :200], logsum[:, :, :200])


def test_large_and_equal_scores() -> None:
    query, key, value = draw(batch=1)
    same = tile_attention(query * 0, key, value, scale=0.2)[0]
    mean = value.double().mean(2, keepdim=True).repeat_interleave(2, 1)
    torch.testing.assert_close(same.double(), mean.expand_as(same), atol=1e-6, rtol=0)
    query, key = query * 1e4, key * 1e4  # scores around 10⁹: the largest takes all
    scores = query.double() @ key.double().repeat_interleave(2, 1).mT
    best, second = scores.topk(2, -1).values.unbind(-1)
    clear = best - second > 1e4
    assert clear.float().mean() > 0.9
    place = scores.argmax(-1, keepdim=True).expand_as(query)
    wanted = value.repeat_interleave(2, 1).gather(2, place)
    got, logsum = tile_attention(query, key, value, scale=1.0)
    assert torch.equal(got[clear], wanted[clear])
    torch.testing.assert_close(logsum.double(), scores.amax(-1), rtol=1e-6, atol=0)


@pytest.mark.parametrize("name", ["query", "key", "value"])
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_nan_is_refused_by_name(name: str, bad: float) -> None:
    tensors = dict(zip(("query", "key", "value"), draw(), strict=True))
    tensors[name][1, 1, 250, 3] = bad
    query, key, value = tensors.values()
    if name == "value" and bad == float("inf"):
        assert ch.attention(query, key, value)[1].isinf().any()
        return
    said = f"{name} holds NaN" if bad != bad else f"{name} holds ±inf"
    with pytest.raises(InputError, match=said):
        ch.attention(query, key, value, causal=True)


def test_a_nan_of_any_bits_stays_nan() -> None:
    query, key, value = draw(batch=1, heads=2)
    odd = torch.tensor([0x7FC001FF], dtype=torch.int32).view(torch.float32)
    query[0, 0, 5, 0] = odd
    output, logsum = tile_attention(query, key, value, scale=0.2)
    assert output[0, 0, 5].isnan().all() and logsum[0, 0, 5].isnan()
    assert output.isnan().sum() == output.shape[3]


OPTIONS: list[dict[str, Any]] = [
    {},
    {"causal": True},
    {"causal": True, "window": 50},
    {"window": 51},
    {"mask": masks.causal() & masks.window(9)},
    {"causal": True, "softcap": 8.0},
    {"causal": True, "sinks": torch.tensor([0.5, -1.0, 3.0, 0.0])},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: " ".join(options) or "plain")
def test_attention_takes_it(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Band] = []

    def noting(*given: Tensor, **named: Any) -> tuple[Tensor, Tensor]:
        calls.append(named["band"])
        return tile_attention(*given, **named)

    monkeypatch.setattr(tile_function, "tile_attention", noting)
    query, key, value = draw()
    got = ch.attention(query, key, value, **options)
    exact = ch.attention_steps(query.double(), key.double(), value.double(), **options).output
    torch.testing.assert_close(got.double(), exact, atol=5e-6, rtol=0)
    kernel = tiles._kernel()
    assert kernel is not None
    # Where every key is visible, flash is as quick unless a register holds a whole vector.
    taken = 1 if options or kernel.wide else 0
    assert len(calls) == taken
    ch.attention(query[:, :, :100], key[:, :, :100], value[:, :, :100], **options)  # short
    ch.attention(query.double(), key.double(), value.double(), **options)
    ch.attention(query, key, value, bias=torch.zeros(300, 300), **options)
    assert len(calls) == taken


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: " ".join(options) or "plain")
@pytest.mark.parametrize("value_dim", [16, 8])
def test_gradients(options: dict[str, Any], value_dim: int) -> None:
    """Its forward goes with the backward of tile_gradients.py."""
    inputs = draw(value_dim=value_dim)
    weights = torch.randn(2, 4, 300, value_dim, generator=torch.Generator().manual_seed(0))

    def gradients(dtype: torch.dtype, attend: Any) -> list[Tensor]:
        leaves = [part.detach().to(dtype).requires_grad_() for part in inputs]
        (attend(*leaves) * weights.to(dtype)).sum().backward()
        return [leaf.grad for leaf in leaves if leaf.grad is not None]

    got = gradients(torch.float32, lambda *given: ch.attention(*given, **options))
    exact = gradients(torch.float64, lambda *given: ch.attention_steps(*given, **options).output)
    for mine, wanted in zip(got, exact, strict=True):
        torch.testing.assert_close(mine.double(), wanted, atol=3e-5, rtol=1e-5)


@pytest.mark.parametrize("options", [{}, {"window": 40}], ids=["plain", "window"])
def test_the_gradient_of_a_sum(options: dict[str, Any]) -> None:
    """It comes as one number, repeated by strides of 0."""
    query, key, value = draw()
    learned = (key.requires_grad_(), value.requires_grad_())
    mine = ch.attention(query, key, value, causal=True, **options).sum()
    plain = ch.attention_steps(query, key, value, causal=True, **options).output.sum()
    for got, wanted in zip(
        torch.autograd.grad(mine, learned), torch.autograd.grad(plain, learned), strict=True
    ):
        torch.testing.assert_close(got, wanted, atol=2e-4, rtol=0)


def test_what_it_is_not_for() -> None:
    query, key, value = draw()
    assert tiles_apply(query, key, value, CAUSAL)
    assert not tiles_apply(query[:, :, : FEWEST_QUERIES - 1], key, value, CAUSAL)
    few = FEWEST_KEYS - 1
    assert not tiles_apply(query, key[:, :, :few], value[:, :, :few])
    assert not tiles_apply(query.double(), key.double(), value.double())
    assert not tiles_apply(query[..., ::2], key[..., ::2], value)
    assert not tiles_apply(query.to("meta"), key.to("meta"), value.to("meta"))
    assert not tiles_apply(query, key, value[..., :3], CAUSAL)
    with torch.autograd.forward_ad.dual_level():
        assert not tiles_apply(query, key, value)


@pytest.mark.filterwarnings("ignore")
def test_not_while_torch_records_its_operations() -> None:
    """The kernel would leave nothing to record."""
    tensors, answers = draw(batch=1), []

    def note(query: Tensor) -> Tensor:
        answers.append(tiles_apply(query, *tensors[1:]))
        return query + 1

    trace: Any = torch.jit.trace
    trace(note, tensors[:1], check_trace=False)
    assert answers == [False]


def test_refuses_where_it_cannot_be_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    tensors = draw()
    with_it = ch.attention(*tensors, causal=True)
    tiles._kernel.cache_clear()
    monkeypatch.setattr(loading, "torch_threads", lambda: None)
    try:
        assert not tiles_apply(*tensors)
        with pytest.raises(RuntimeError, match="ask tiles_apply first"):
            tile_attention(*tensors, scale=0.1)
        without = ch.attention(*tensors, causal=True)  # by flash
    finally:
        tiles._kernel.cache_clear()
    torch.testing.assert_close(without, with_it, atol=1e-5, rtol=0)


NARROW = """
import torch, clearhead as ch
from clearhead.attention.masks import Band
from clearhead.attention.tiles import tile_attention, tiles_apply
query, key, value = torch.randn(3, 1, 2, 333, 24, generator=torch.Generator().manual_seed(0))
assert tiles_apply(query, key, value, Band(None, 0))
assert not tiles_apply(query, key, value)  # where nothing is hidden, flash is as quick
got = tile_attention(query, key, value, scale=0.2, band=Band(None, 0), softcap=9.0)[0]
exact = ch.attention_steps(
    query.double(), key.double(), value.double(), scale=0.2, causal=True, softcap=9.0
).output
print((got - exact).abs().max().item())
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
    assert float(done.stdout) < 3e-6
