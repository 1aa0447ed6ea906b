"""What the mathematics promises, for any numbers.

A row's result and its batch neighbours: our decoding kernel gives the same to the last bit whatever
else is in the batch, and so does torch's flash kernel on one thread. On several, its scratch memory
lies differently for each, and matrix products round by where their numbers lie: 1e-6 then. The same
with a softcap, where the plain steps run, whose matrix products choose their way by the whole size.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import clearhead as ch
from clearhead.attention import masks

seeds = st.integers(0, 2**32 - 1)


class Case(NamedTuple):
    query: Tensor  # (2, head, query, key_dim)
    key: Tensor
    value: Tensor
    mask: Tensor  # (2, 1, query, key)
    options: dict[str, Any]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Any sizes and options; numbers from a drawn seed."""
    generator = torch.Generator().manual_seed(draw(seeds))
    kv_heads, group = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    queries, keys = draw(st.integers(1, 7)), draw(st.integers(1, 11))
    key_dim, value_dim = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    heads = kv_heads * group
    options: dict[str, Any] = {
        "softcap": draw(st.sampled_from([None, 3.0])),
        "scale": draw(st.sampled_from([None, 0.7])),
    }
    return Case(
        torch.randn(2, heads, queries, key_dim, generator=generator),
        torch.randn(2, kv_heads, keys, key_dim, generator=generator),
        torch.randn(2, kv_heads, keys, value_dim, generator=generator),
        torch.rand(2, 1, queries, keys, generator=generator) > draw(st.sampled_from([0.0, 0.5])),
        options,
    )


def close(found: Tensor, wanted: Tensor, tolerance: float = 1e-6) -> None:
    torch.testing.assert_close(found, wanted, atol=tolerance * 4, rtol=tolerance)


@given(cases(), seeds)
def test_permuting_keys_with_their_values_changes_nothing(case: Case, seed: int) -> None:
    order = torch.randperm(case.key.shape[2], generator=torch.Generator().manual_seed(seed))
    found = ch.attention(
        case.query, case.key[:, :, order], case.value[:, :, order],
        mask=case.mask[..., order], **case.options,
    )  # fmt: skip
    close(found, ch.attention(*case[:3], mask=case.mask, **case.options))


@given(cases(), seeds)
def test_permuting_queries_permutes_the_rows(case: Case, seed: int) -> None:
    order = torch.randperm(case.query.shape[2], generator=torch.Generator().manual_seed(seed))
    found = ch.attention(
        case.query[:, :, order], case.key, case.value, mask=case.mask[:, :, order], **case.options
    )
    close(found, ch.attention(*case[:3], mask=case.mask, **case.options)[:, :, order])


@given(cases(), st.floats(-30, 30, width=32))
def test_a_uniform_shift_of_the_scores_changes_nothing(case: Case, shift: float) -> None:
    bias = torch.full(case.mask.shape, shift)
    found = ch.attention(*case[:3], mask=case.mask, bias=bias, **case.options)
    wanted = ch.attention(*case[:3], mask=case.mask, **case.options)
    close(found, wanted, tolerance=1e-5)  # a shift of 30 costs a few bits of each score
    assert ch.attention(*case[:3], bias=bias[:, :, :, :1], **case.options).shape == found.shape


@given(cases())
def test_weights_are_shares(case: Case) -> None:
    weights = ch.attention_steps(*case[:3], mask=case.mask, **case.options).weights
    sees = case.mask.any(-1).float().expand(weights.shape[:-1])
    assert (weights >= 0).all()
    close(weights.sum(-1), sees)
    assert not weights[(~case.mask).expand_as(weights)].any()
    sinks = torch.randn(weights.shape[1])
    less = ch.attention_steps(*case[:3], mask=case.mask, sinks=sinks, **case.options).weights
    assert (less.sum(-1) < 1).all()


@given(cases())
def test_values_that_are_all_one_come_out_as_the_sum_of_the_weights(case: Case) -> None:
    ones = torch.ones_like(case.value)
    found = ch.attention(case.query, case.key, ones, mask=case.mask, **case.options)
    close(found, case.mask.any(-1, keepdim=True).float().expand_as(found))


@given(cases())
def test_the_result_lies_between_the_smallest_and_the_largest_value(case: Case) -> None:
    found = ch.attention(*case[:3], **case.options)
    group = case.query.shape[1] // case.key.shape[1]
    value = case.value.repeat_interleave(group, dim=1)
    assert (found <= value.amax(2, keepdim=True) + 1e-6).all()
    assert (found >= value.amin(2, keepdim=True) - 1e-6).all()


@given(cases(), st.floats(-3, 3, width=32))
def test_the_result_is_linear_in_the_values(case: Case, factor: float) -> None:
    found = ch.attention(case.query, case.key, factor * case.value, **case.options)
    close(found, factor * ch.attention(*case[:3], **case.options), tolerance=1e-5)


@given(cases(), st.booleans(), st.sampled_from([None, 1, 3]))
def test_a_row_does_not_depend_on_its_batch_neighbours(
    case: Case, causal: bool, window: int | None
) -> None:
    options = {**case.options, "causal": causal, "window": window}
    for mask in (None, case.mask):
        together = ch.attention(*case[:3], mask=mask, **options)
        for row in range(2):
            only = slice(row, row + 1)
            seen = None if mask is None else mask[only]
            alone = ch.attention(*(part[only] for part in case[:3]), mask=seen, **options)
            if options["softcap"] is None:
                assert alone[0].equal(together[row])
            else:
                close(alone[0], together[row])


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("queries", "keys"), [(1, 1024), (3, 300), (257, 257), (16, 700)])
@pytest.mark.parametrize("causal", [False, True])
def test_batch_neighbours_at_real_sizes(
    queries: int, keys: int, causal: bool, threads: int
) -> None:
    torch.set_num_threads(threads)
    generator = torch.Generator().manual_seed(0)
    query = torch.randn(5, 6, queries, 64, generator=generator)
    key, value = torch.randn(2, 5, 3, keys, 64, generator=generator)
    together = ch.attention(query, key, value, causal=causal)
    for row in range(5):
        only = slice(row, row + 1)
        alone = ch.attention(query[only], key[only], value[only], causal=causal)
        if threads == 1 or queries == 1:
            assert alone[0].equal(together[row])
        else:
            close(alone[0], together[row])


@given(cases(), st.booleans())
def test_rows_that_see_nothing(case: Case, with_sinks: bool) -> None:
    mask = case.mask.clone()
    mask[:, :, 0] = False
    sinks = torch.zeros(case.query.shape[1], requires_grad=True) if with_sinks else None
    leaves = [part.clone().requires_grad_() for part in case[:3]]
    output = ch.attention(*leaves, mask=mask, sinks=sinks, **case.options)
    assert not output[:, :, 0].any()
    output.square().sum().backward()  # type: ignore[no-untyped-call]
    for leaf in leaves:
        assert leaf.grad is not None and leaf.grad.isfinite().all()
    assert leaves[0].grad is not None and not leaves[0].grad[:, :, 0].any()
    if sinks is not None:
        assert sinks.grad is not None and sinks.grad.isfinite().all()


@given(cases(), st.integers(1, 11))
def test_padding_keys_changes_nothing(case: Case, more: int) -> None:
    keys = case.key.shape[2]
    pad = [torch.nn.functional.pad(part, (0, 0, 0, more), value=7.0) for part in case[1:3]]
    for mask in (masks.lengths(keys), masks.lengths(torch.tensor([keys, keys]))):
        found = ch.attention(case.query, *pad, mask=mask, **case.options)
        close(found, ch.attention(*case[:3], **case.options))
