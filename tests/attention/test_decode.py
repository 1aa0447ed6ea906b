"""The single-step kernel against the plain formula in float64."""

from __future__ import annotations

import ctypes
import itertools
import subprocess
import sys

import numba
import numpy as np
import pytest
import torch
from torch import Tensor

from clearhead.attention import decode
from clearhead.attention.decode import decode_applies, decode_attention
from clearhead.kernels import loading

KEYS = 331  # two chunks and a part of one, whose keys are no multiple of eight


def plain(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    scale: float,
    softcap: float | None = None,
    sinks: Tensor | None = None,
) -> Tensor:
    group = query.shape[1] // key.shape[1]
    key, value = (x.double().repeat_interleave(group, dim=1) for x in (key, value))
    scores = query.double() @ key.transpose(-1, -2) * scale
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    if sinks is not None:
        sink = sinks.double().view(1, -1, 1, 1).expand(*scores.shape[:3], 1)
        return torch.softmax(torch.cat([scores, sink], -1), -1)[..., :-1] @ value
    return torch.softmax(scores, -1) @ value


def draw(
    *, batch: int = 2, heads: int = 6, kv_heads: int = 3, queries: int = 1, keys: int = KEYS,
    key_dim: int = 64, value_dim: int = 64,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    generator = torch.Generator().manual_seed(heads * keys + key_dim)
    return (
        torch.randn(batch, heads, queries, key_dim, generator=generator),
        torch.randn(batch, kv_heads, keys, key_dim, generator=generator),
        torch.randn(batch, kv_heads, keys, value_dim, generator=generator),
    )


HEADS = ((9, 3), (7, 1), (5, 5), (14, 2))
WIDTHS = ((64, 64), (13, 7), (67, 131), (128, 32), (1, 1))


@pytest.mark.parametrize(("heads", "kv_heads"), HEADS)
@pytest.mark.parametrize(("key_dim", "value_dim"), WIDTHS)
@pytest.mark.parametrize("queries", [1, 11])
def test_equals_the_formula(
    heads: int, kv_heads: int, key_dim: int, value_dim: int, queries: int
) -> None:
    tensors = draw(
        heads=heads, kv_heads=kv_heads, queries=queries, key_dim=key_dim, value_dim=value_dim
    )
    sinks = torch.linspace(-2, 3, heads)
    scale = key_dim**-0.5
    for softcap, sink in itertools.product((None, 1.7, 50.0), (None, sinks)):
        got = decode_attention(*tensors, scale=scale, softcap=softcap, sinks=sink)
        wanted = plain(*tensors, scale=scale, softcap=softcap, sinks=sink)
        assert got.shape == (2, heads, queries, value_dim)
        torch.testing.assert_close(got.double(), wanted, atol=1e-6, rtol=0)


@pytest.mark.parametrize("keys", [1, 7, 8, 127, 128, 129, 1024, 4099])
def test_any_number_of_keys(keys: int) -> None:
    tensors = draw(batch=1, keys=keys, key_dim=37, value_dim=29)
    got = decode_attention(*tensors, scale=0.2)
    torch.testing.assert_close(got.double(), plain(*tensors, scale=0.2), atol=1e-6, rtol=0)


def test_weights_worked_by_hand() -> None:
    """Scores ln 1, ln 2, ln 5 with a sink of ln 2: weights 1/10, 2/10 and 5/10."""
    key = torch.tensor([1.0, 2.0, 5.0]).log().view(1, 1, 3, 1)
    value = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]).view(1, 1, 3, 2)
    sinks = torch.tensor([2.0]).log()
    got = decode_attention(torch.ones(1, 1, 1, 1), key, value, scale=1.0, sinks=sinks)
    torch.testing.assert_close(got.flatten(), torch.tensor([0.6, 0.7]))


def test_views_of_a_cache_are_read_where_they_lie() -> None:
    query, key, value = draw(queries=3, key_dim=17, value_dim=23)
    token_major = torch.full((KEYS + 40, 5, 4, 61), torch.nan)
    key_view = token_major[31 : 31 + KEYS, 1:4, ::2, 3:20].permute(2, 1, 0, 3)
    value_view = token_major[31 : 31 + KEYS, 1:4, 1::2, 29:52].permute(2, 1, 0, 3)
    key_view.copy_(key)
    value_view.copy_(value)
    query_view = query.transpose(1, 2).contiguous().transpose(1, 2)
    assert decode_applies(query_view, key_view, value_view)
    got = decode_attention(query_view, key_view, value_view, scale=0.3)
    assert torch.equal(got, decode_attention(query, key, value, scale=0.3))


@pytest.mark.parametrize("size", [1e2, 1e4, 1e15])
def test_huge_scores_do_not_overflow(size: float) -> None:
    query, key, value = draw()
    got = decode_attention(query, key, value, scale=size)
    best = (query.double() @ key.double().repeat_interleave(2, 1).transpose(-1, -2)).argmax(-1)
    wanted = value.repeat_interleave(2, 1).gather(2, best[..., None].expand(-1, -1, -1, 64))
    assert got.isfinite().all()
    if size > 1e3:
        torch.testing.assert_close(got, wanted)


def test_huge_sinks_take_everything() -> None:
    query, key, value = draw()
    got = decode_attention(query, key, value, scale=0.1, sinks=torch.full((6,), 1e4))
    assert torch.equal(got, torch.zeros_like(got))
    without = decode_attention(query, key, value, scale=0.1)
    gone = torch.full((6,), -torch.inf)
    assert torch.equal(decode_attention(query, key, value, scale=0.1, sinks=gone), without)


def test_a_row_has_the_same_bits_in_any_batch_and_on_any_number_of_threads() -> None:
    query, key, value = draw(batch=5, heads=9, kv_heads=3, queries=2, keys=KEYS)
    together = decode_attention(query, key, value, scale=0.125)
    assert torch.equal(together, decode_attention(query, key, value, scale=0.125))
    for row in range(5):
        one = slice(row, row + 1)
        alone = decode_attention(query[one], key[one], value[one], scale=0.125)
        assert torch.equal(alone, together[one])
    threads = torch.get_num_threads()
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            assert torch.equal(decode_attention(query, key, value, scale=0.125), together)
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("where", ["query", "key", "value"])
@pytest.mark.parametrize("softcap", [None, 3.0])
def test_nan_shows_in_the_rows_that_use_it_and_nowhere_else(
    where: str, softcap: float | None
) -> None:
    tensors = dict(zip(("query", "key", "value"), draw(), strict=True))
    tensors[where][1, 2, -1, 5] = torch.nan
    got = decode_attention(**tensors, scale=0.1, softcap=softcap).isnan()
    rows = torch.zeros(2, 6, 1, 64, dtype=torch.bool)
    if where == "query":
        rows[1, 2] = True
    elif where == "key":
        rows[1, 4:6] = True
    else:
        rows[1, 4:6, :, 5] = True
    assert torch.equal(got, rows)


def test_applies_to_a_decoding_step() -> None:
    query, key, value = draw(keys=1024)
    assert decode_applies(query, key, value)
    assert decode_applies(query, key, value, sinks=torch.zeros(6))


def test_refuses_what_it_cannot_read() -> None:
    query, key, value = draw(keys=1024)
    assert not decode_applies(query.double(), key.double(), value.double())
    assert not decode_applies(query, key.bfloat16(), value)
    assert not decode_applies(query.to("meta"), key.to("meta"), value.to("meta"))
    assert not decode_applies(query[0], key[0], value[0])
    assert not decode_applies(query, key, value.mT.contiguous().mT)
    assert not decode_applies(query, key, value, sinks=torch.zeros(6, dtype=torch.float64))
    assert not decode_applies(query, key, value, sinks=torch.zeros(12)[::2])


def test_refuses_axes_that_do_not_fit() -> None:
    query, key, value = draw(keys=1024)
    assert not decode_applies(query, key[:1], value[:1])
    assert not decode_applies(query, key, value[:, :, 1:])
    assert not decode_applies(query, key[:, :1], value)
    assert not decode_applies(query[:, :5], key, value)
    assert not decode_applies(query[..., :63], key, value)
    assert not decode_applies(query, key[:, :0], value[:, :0])
    assert not decode_applies(query, key, value, sinks=torch.zeros(3))


def test_refuses_what_torch_does_faster() -> None:
    query, key, value = draw(keys=decode.FEWEST_KEYS)
    assert decode_applies(query, key, value)
    assert not decode_applies(query, key[:, :, 1:], value[:, :, 1:])
    some = query.expand(-1, -1, decode.MOST_QUERIES + 1, -1)
    assert not decode_applies(some, key, value)
    assert decode_applies(some, key, value, softcap=30.0)
    assert decode_applies(some, key, value[..., :32])
    many = query.expand(-1, -1, decode.MOST_QUERIES_UNFUSED + 1, -1)
    assert not decode_applies(many, key, value, softcap=30.0)
    assert not decode_applies(query[:, :, :0], key, value)


def test_refuses_while_somebody_differentiates() -> None:
    query, key, value = draw(keys=1024)
    key.requires_grad_()
    assert not decode_applies(query, key, value)
    with torch.no_grad():
        assert decode_applies(query, key, value)
    key = key.detach()
    with torch.autograd.forward_ad.dual_level():
        assert not decode_applies(query, key, value)
    answers: list[bool] = []

    def step(rows: Tensor) -> Tensor:
        answers.append(decode_applies(rows[None], key[:1], value[:1]))
        return rows

    torch.func.vmap(step)(query)
    assert answers == [False]


def test_refuses_without_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    tensors = draw(keys=1024)
    decode._kernel.cache_clear()
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.delitem(sys.modules, "clearhead.attention.kernels.decode")
    try:
        assert not decode_applies(*tensors)
    finally:
        decode._kernel.cache_clear()


def test_importing_it_does_not_import_numba() -> None:
    code = "import sys; import clearhead.attention.decode; sys.exit('numba' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_refuses_where_torch_has_no_openmp(monkeypatch: pytest.MonkeyPatch) -> None:
    tensors = draw(keys=1024)
    decode._kernel.cache_clear()
    monkeypatch.setattr(loading, "torch_threads", lambda: None)
    try:
        assert not decode_applies(*tensors)
        with pytest.raises(RuntimeError, match="ask decode_applies first"):
            decode_attention(*tensors, scale=0.1)
    finally:
        decode._kernel.cache_clear()


def test_the_cache_notices_another_step() -> None:
    """numba keeps a kernel by its file and signature: the structure must be in the signature."""

    class Longer(ctypes.Structure):
        _fields_ = [*decode.Step._fields_, ("more", ctypes.c_int64)]

    ours, longer = (np.dtype(structure) for structure in (decode.Step, Longer))
    assert numba.from_dtype(ours) == numba.from_dtype(np.dtype(decode.Step))
    assert numba.from_dtype(ours) != numba.from_dtype(longer)
