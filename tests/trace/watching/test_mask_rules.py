from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from clearhead.attention import masks
from clearhead.trace.row_rules import RowRules
from clearhead.trace.watching.mask_rules import RuleCache
from clearhead.trace.watching.observed_call import ObservedCall
from clearhead.trace.watching.sample_check import formula_weights

BATCH, HEADS, KV_HEADS, QUERIES, KEYS, WIDTH = 2, 6, 3, 5, 7, 11


def tensors(queries: int = QUERIES, keys: int = KEYS) -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    return torch.randn(BATCH, HEADS, queries, WIDTH), torch.randn(BATCH, KV_HEADS, keys, WIDTH)


def observed(queries: int = QUERIES, keys: int = KEYS, **options: object) -> ObservedCall:
    query, key = tensors(queries, keys)
    return ObservedCall(query, key, None, scale=0.3, output=None, **options)  # type: ignore[arg-type]


def spelled(piece: RowRules, batch: int) -> Tensor:
    seen = None if piece.mask is None else piece.mask.block(batch, range(QUERIES), range(KEYS))
    return torch.ones(1, QUERIES, KEYS, dtype=torch.bool) if seen is None else seen


@given(st.data())
def test_any_mask_comes_back_from_its_rule(data: st.DataObject) -> None:
    cells = st.lists(st.booleans(), min_size=KEYS, max_size=KEYS)
    shape = data.draw(st.sampled_from([(1, 1), (BATCH, 1), (1, HEADS), (BATCH, HEADS)]))
    rows = shape[0] * shape[1] * QUERIES
    given_mask = torch.tensor(data.draw(st.lists(cells, min_size=rows, max_size=rows)))
    mask = given_mask.view(*shape, QUERIES, KEYS)
    rules = RuleCache().of(observed(mask=mask))
    whole = mask.expand(BATCH, HEADS, QUERIES, KEYS)
    for batch in range(BATCH):
        assert torch.equal(spelled(rules.piece, batch).expand(HEADS, -1, -1), whole[batch])


@pytest.mark.parametrize(
    "rule",
    [
        masks.causal(),
        masks.causal() & masks.window(2),
        masks.window(1, 2),
        masks.lengths(torch.tensor([7, 4])),
        masks.causal(offset=torch.tensor([2, 0])),
        masks.documents(torch.tensor([0, 0, 1, 1, 1, 2, 2])),
        masks.causal() & masks.padding(torch.tensor([[False, False] + [True] * 5, [True] * 7])),
    ],
)
def test_usual_masks_are_kept_linear_in_tokens(rule: masks.Mask) -> None:
    mask = rule.tensor(QUERIES, KEYS)
    mask = mask[(None,) * (4 - mask.ndim)]
    for seen in (observed(mask=mask), observed(rule=rule)):
        piece = RuleCache().of(seen).piece
        assert piece.mask is not None and piece.mask.dense is None
        for batch in range(BATCH):
            expected = mask[batch if mask.shape[0] > 1 else 0, 0]
            assert torch.equal(spelled(piece, batch)[0], expected)


def test_biases_of_key_or_distance_are_kept_linear_in_tokens() -> None:
    slope = torch.tensor([0.5, 0.25, 0.125, 1.0, 2.0, 3.0])[:, None, None]
    of_key = (slope * torch.arange(KEYS)).expand(1, -1, QUERIES, -1)
    distance = torch.arange(KEYS) - torch.arange(QUERIES)[:, None]
    of_distance = (slope * distance.float().sin())[None]
    hidden = masks.causal().tensor(QUERIES, KEYS)
    lowest = torch.finfo(torch.float32).min
    for bias, kept in ((of_key, "numbers"), (of_distance, "diagonals")):
        piece = RuleCache().of(observed(bias=bias)).piece
        assert piece.bias is not None and piece.mask is None
        assert torch.equal(piece.bias.block(1, range(QUERIES), range(KEYS)), bias[0])
        assert getattr(piece.bias, kept).numel() <= HEADS * (QUERIES + KEYS)
    merged = RuleCache().of(observed(mask=of_key.masked_fill(~hidden, lowest))).piece
    assert merged.mask is not None and merged.bias is not None and merged.bias.numbers is not None
    assert merged.bias.numbers.shape == (1, HEADS, 1, KEYS)
    assert torch.equal(spelled(merged, 0)[0], hidden)


def test_a_finite_mask_spreads_a_blind_row_evenly() -> None:
    lowest = torch.finfo(torch.float32).min
    mask = torch.zeros(1, 1, QUERIES, KEYS)
    mask[..., 2, :] = lowest
    rules = RuleCache().of(observed(mask=mask))
    assert rules.uniform is not None and rules.uniform.tolist() == [
        [[False, False, True, False, False]]
    ]
    assert rules.equal_keys is not None and int(rules.equal_keys[0, 0, 2]) == KEYS
    assert rules.notes == ("rows in which everything is masked attend equally, as in the model",)
    with_infinity = RuleCache().of(observed(mask=mask.masked_fill(mask < 0, -torch.inf)))
    assert with_infinity.uniform is None
    assert not spelled(with_infinity.piece, 0)[0, 2].any()


def test_one_mask_is_looked_at_once() -> None:
    book, mask = RuleCache(), masks.causal().tensor(QUERIES, KEYS)[None, None]
    first = book.of(observed(mask=mask))
    assert book.of(observed(mask=mask)) is first
    mask[..., 0, :] = True
    assert book.of(observed(mask=mask)) is not first


@pytest.mark.parametrize("number", [-1e9, -1e30, torch.finfo(torch.float32).min])
def test_only_the_highest_of_a_blind_row_get_anything(number: float) -> None:
    mask = torch.zeros(1, 1, QUERIES, KEYS)
    mask[..., 2, :] = -torch.inf
    mask[..., 2, 1:4] = number
    rules = RuleCache().of(observed(mask=mask))
    assert rules.uniform is not None and int(rules.equal_keys[0, 0, 2]) == 3  # type: ignore[index]
    assert spelled(rules.piece, 0)[0, 2].tolist() == [False, True, True, True, False, False, False]


@pytest.mark.parametrize("number", [-1e4, -65504.0, -1e9])
@pytest.mark.parametrize("times", [1.0, 1e2, 1e5])
def test_scores_that_outweigh_a_mask(number: float, times: float) -> None:
    """What is added is what the rules say, cell by cell, wherever it decides."""
    cells = torch.rand(BATCH, 1, QUERIES, KEYS, generator=torch.Generator().manual_seed(3)) > 0.5
    call = observed(mask=torch.where(cells, 0.0, number))
    call.query, call.key = call.query.double() * times, call.key.double()
    cache = RuleCache()
    cache.of(observed(mask=call.mask))  # the same mask, in a layer of small scores
    found = cache.of(call)
    scores = (call.query @ call.key.repeat_interleave(2, 1).mT) * call.scale
    own = torch.softmax(scores + torch.where(cells, 0.0, number), dim=-1)
    for batch in range(BATCH):
        for head in range(HEADS):
            row = scores[batch, head]
            if found.piece.bias is not None:
                part = found.piece.bias.block(batch, range(QUERIES), range(KEYS))
                row = row + (part[0] if len(part) == 1 else part[head])
            row = row.masked_fill(~spelled(found.piece, batch)[0], -torch.inf)
            shown = torch.softmax(row, dim=-1)
            there = cells[batch, 0].any(dim=-1)
            torch.testing.assert_close(shown[there], own[batch, head][there], rtol=0, atol=1e-12)


@pytest.mark.parametrize(("times", "held"), [(1.0, True), (1e5, False)])
def test_scores_below_what_masked_ones_are_filled_with(times: float, held: bool) -> None:
    call = observed(mask=torch.ones(1, 1, QUERIES, KEYS, dtype=torch.bool).tril(), fill=-1e4)
    call.query = call.query * times
    assert RuleCache().of(call).hold(call) is held


def test_a_small_finite_mask_is_a_number_like_others() -> None:
    mask = torch.zeros(1, 1, QUERIES, KEYS)
    mask[..., 2, :] = -1e4
    rules = RuleCache().of(observed(mask=mask))
    assert rules.uniform is None and rules.piece.bias is not None
    assert rules.piece.bias.block(0, range(2, 3), range(KEYS)).eq(-1e4).all()
    assert spelled(rules.piece, 0)[0, 2].all()


@pytest.mark.parametrize(("size", "coarse"), [(1.0, False), (30.0, True)])
def test_rows_that_only_rounding_decides_are_told(size: float, coarse: bool) -> None:
    """Beside −10⁹, float32 knows multiples of 64: small scores vanish, large ones become others."""
    mask = torch.zeros(1, 1, QUERIES, KEYS)
    mask[..., 2, :] = -1e9
    call = observed(mask=mask)
    call.query = call.query * size
    rules = RuleCache().of(call)
    assert rules.rounded is coarse and (rules.uniform is not None) is not coarse
    mask[..., 2, 0] = 0.0  # a key to look at: then the others do not matter
    assert not RuleCache().of(replace(call, mask=mask.clone())).rounded


@pytest.mark.parametrize("number", [-1e4, -65504.0])
def test_rows_that_the_model_rounded_to_other_scores_are_told(number: float) -> None:
    """Beside −65504, float32 knows multiples of 1/256: the last digit of a product may decide."""
    mask = torch.zeros(1, 1, QUERIES, KEYS)
    mask[..., 2, :] = number
    call = observed(mask=mask)
    call.weights = formula_weights(call, range(QUERIES))
    assert RuleCache().of(call).hold(call)
    scores = call.weights.log()
    scores[0, 3, 2, 4] += 2.0**-8
    call.weights = torch.softmax(scores, dim=-1)
    assert not RuleCache().of(call).hold(call)
    visible = mask.clone()
    visible[..., 2, 0] = 0.0  # a key to look at: nothing of the others is left
    seen = observed(mask=visible)
    assert RuleCache().of(seen).numbered is None
