from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from clearhead.attention import masks
from clearhead.attention.cache import KVCache, SlidingKVCache
from clearhead.attention.relative import relative_bias, relative_buckets
from clearhead.attention.rotary import Rotary, rotate
from clearhead.errors import InputError
from clearhead.layers.multi_head import MultiHeadAttention

BATCH, QUERIES, MODEL = 2, 5, 12


pytestmark = pytest.mark.usefixtures("seeded")


def states(tokens: int = QUERIES, width: int = MODEL, batch: int = BATCH) -> Tensor:
    return torch.randn(batch, tokens, width)


@pytest.mark.parametrize(
    ("d", "T", "m", "l"), [(12, 3, 4, 4), (7, 5, 3, 2), (11, 2, 13, 17), (8, 1, 8, 8)]
)
def test_the_parameter_count_and_that_it_says_so(d: int, T: int, m: int, l: int) -> None:  # noqa: E741, N803
    layer = MultiHeadAttention(d, T, key_dim=m, value_dim=l)
    count = d * (2 * m + l) * T + T * l * d
    assert layer.parameter_count == sum(p.numel() for p in layer.parameters()) == count
    assert f"{count:,} parameters = d·(2m + l)·T + T·l·d" in repr(layer)
    assert f"{T} heads of key width {m} and value width {l}" in repr(layer)
    biased = MultiHeadAttention(d, T, key_dim=m, value_dim=l, bias=True)
    more = T * (2 * m + l) + d
    assert biased.parameter_count == count + more
    assert f"{count + more:,} parameters = d·(2m + l)·T + T·l·d + biases" in repr(biased)


def test_it_says_what_else_there_is() -> None:
    everything = MultiHeadAttention(12, 3, output_bias=True, norm=nn.RMSNorm, sinks=True)
    assert "599 parameters = d·(2m + l)·T + T·l·d + biases + norms + sinks" in repr(everything)
    assert everything.parameter_count == 576 + 12 + 8 + 3
    grouped = repr(MultiHeadAttention(12, 6, kv_heads=2))
    assert "2 key/value heads" in grouped and "d·(2m + l)·T" not in grouped
    cross = repr(MultiHeadAttention(12, 3, context=7))
    assert "cross-attention from 12 to 7" in cross and "d·(2m + l)·T" not in cross


def by_hand(layer: MultiHeadAttention, c: Tensor, context: Tensor | None = None) -> Tensor:
    """Σ over the heads of softmax(c·W_q (c·W_k)ᵀ / √m) · c·W_v · W_O."""
    total = torch.zeros(*c.shape[:2], layer.output.out_features)
    source = c if context is None else context
    for index in range(layer.heads):
        w_q, w_k, w_v, w_o = layer.head(index)
        scores = (c @ w_q) @ (source @ w_k).mT / math.sqrt(layer.key_dim)
        total = total + torch.softmax(scores, dim=-1) @ (source @ w_v) @ w_o
    return total


@pytest.mark.parametrize(("kv_heads", "key_dim", "value_dim"), [(6, 3, 5), (2, 5, 3), (1, 4, 4)])
def test_the_matrices_of_the_heads_give_the_output(
    kv_heads: int, key_dim: int, value_dim: int
) -> None:
    layer = MultiHeadAttention(MODEL, 6, kv_heads=kv_heads, key_dim=key_dim, value_dim=value_dim)
    w_q, w_k, w_v, w_o = layer.head(5)
    assert w_q.shape == w_k.shape == (MODEL, key_dim)
    assert w_v.shape == (MODEL, value_dim) and w_o.shape == (value_dim, MODEL)
    c = states()
    torch.testing.assert_close(layer(c), by_hand(layer, c), atol=1e-6, rtol=1e-5)
    cross = MultiHeadAttention(
        MODEL, 6, kv_heads=kv_heads, key_dim=key_dim, value_dim=value_dim, context=7
    )
    context = states(11, 7)
    wanted = by_hand(cross, c, context)
    torch.testing.assert_close(cross(c, context), wanted, atol=1e-6, rtol=1e-5)


def test_a_head_that_is_not_there() -> None:
    for index in (-1, 3):
        with pytest.raises(InputError, match=rf"index .* from 0 to 2; got {index}"):
            MultiHeadAttention(12, 3).head(index)


def test_one_number_by_hand() -> None:
    """Two tokens, one head of width 1, W = 1 everywhere: q = k = v = c."""
    layer = MultiHeadAttention(1, 1)
    for linear in (layer.query, layer.key, layer.value, layer.output):
        nn.init.ones_(linear.weight)
    found = layer(torch.tensor([[[1.0], [2.0]]]))[0, :, 0]
    # weights of token 1: e^1, e^2; of token 2: e^2, e^4
    e = math.e
    assert found[0].item() == pytest.approx((e + 2 * e**2) / (e + e**2))
    assert found[1].item() == pytest.approx((e**2 + 2 * e**4) / (e**2 + e**4))


def test_the_activation_is_on_all_three_projections() -> None:
    layer = MultiHeadAttention(MODEL, 1, key_dim=7, value_dim=5, bias=True, activation=torch.tanh)
    c = states()
    q, k, v = (torch.tanh(linear(c)) for linear in (layer.query, layer.key, layer.value))
    wanted = layer.output(functional.scaled_dot_product_attention(q, k, v))
    torch.testing.assert_close(layer(c), wanted, atol=1e-6, rtol=1e-5)


def test_queries_and_keys_are_normalised_for_each_head() -> None:
    layer = MultiHeadAttention(MODEL, 3, kv_heads=1, norm=nn.RMSNorm)
    assert isinstance(layer.query_norm, nn.RMSNorm) and isinstance(layer.key_norm, nn.RMSNorm)
    nn.init.uniform_(layer.query_norm.weight)
    nn.init.uniform_(layer.key_norm.weight)
    c = states()
    q = layer.query_norm(layer.query(c).view(BATCH, QUERIES, 3, 4)).transpose(1, 2)
    k = layer.key_norm(layer.key(c).view(BATCH, QUERIES, 1, 4)).transpose(1, 2)
    v = layer.value(c).view(BATCH, QUERIES, 1, 4).transpose(1, 2)
    mixed = functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    wanted = layer.output(mixed.transpose(1, 2).flatten(2))
    torch.testing.assert_close(layer(c), wanted, atol=1e-6, rtol=1e-5)


def test_rotary_turns_queries_and_keys_and_not_values() -> None:
    rotary = Rotary(4)
    layer = MultiHeadAttention(MODEL, 3, rotary=rotary)
    c = states()
    heads = [
        linear(c).view(BATCH, QUERIES, 3, 4).transpose(1, 2)
        for linear in (layer.query, layer.key, layer.value)
    ]
    rotation = rotary.at(torch.arange(QUERIES))
    q, k, v = rotate(heads[0], rotation), rotate(heads[1], rotation), heads[2]
    mixed = functional.scaled_dot_product_attention(q, k, v)
    wanted = layer.output(mixed.transpose(1, 2).flatten(2))
    torch.testing.assert_close(layer(c), wanted, atol=1e-6, rtol=1e-5)
    given = layer(c, rotation=rotary.at(torch.arange(QUERIES)[None]))
    assert given.equal(layer(c))


def test_rotation_in_double_precision_is_computed_in_double() -> None:
    layer = MultiHeadAttention(MODEL, 3, rotary=Rotary(4)).double()
    c = states().double()
    exact = layer(c, rotation=Rotary(4).at(torch.arange(QUERIES)[None], torch.float64))
    assert layer(c).equal(exact)


def test_agreement_with_torchs_module() -> None:
    theirs = nn.MultiheadAttention(MODEL, 3, bias=False, batch_first=True)
    ours = MultiHeadAttention(MODEL, 3)
    with torch.no_grad():
        for linear, weight in zip(
            (ours.query, ours.key, ours.value), theirs.in_proj_weight.chunk(3), strict=True
        ):
            linear.weight.copy_(weight)
        ours.output.weight.copy_(theirs.out_proj.weight)
    c = states()
    hidden = torch.rand(QUERIES, QUERIES) > 0.6
    hidden.fill_diagonal_(False)
    padded = torch.tensor([[False] * 5, [False, False, False, True, True]])
    wanted = theirs(c, c, c, attn_mask=hidden, key_padding_mask=padded, need_weights=False)[0]
    found = ours(c, mask=masks.padding(~padded) & ~hidden)  # True means the opposite there
    torch.testing.assert_close(found, wanted, atol=1e-6, rtol=1e-5)


SELF: dict[str, dict[str, Any]] = {
    "plain": {},
    "grouped": {"kv_heads": 1, "value_dim": 5},
    "rotary": {"rotary": Rotary(4)},
    "neighbours": {"rotary": Rotary(2, pairing="neighbours"), "kv_heads": 1},
    "window": {"window": 3},
    "sinks": {"sinks": True, "softcap": 3.0},
    "norm": {"norm": nn.RMSNorm, "rotary": Rotary(4), "bias": True},
}
EVERY = pytest.mark.parametrize("options", list(SELF.values()), ids=list(SELF))


@EVERY
@pytest.mark.parametrize("split", [[1] * 11, [4, 1, 6], [10, 1]], ids=str)
def test_cached_generation_equals_the_full_forward(
    options: dict[str, Any], split: list[int]
) -> None:
    layer = MultiHeadAttention(MODEL, 3, causal=True, **options).eval()
    c = states(11)
    full = layer(c)
    cache = KVCache()
    steps = [layer(part, cache=cache) for part in torch.split(c, split, dim=1)]
    torch.testing.assert_close(torch.cat(steps, dim=1), full, atol=2e-6, rtol=0)
    assert cache.length == 11


@EVERY
def test_each_row_of_a_ragged_batch_gets_what_it_gets_alone(options: dict[str, Any]) -> None:
    layer = MultiHeadAttention(MODEL, 3, causal=True, **options).eval()
    rounds = [(5, 3, 4), (2, 1, 3), (1, 1, 1), (1, 0, 1), (1, 1, 1)]
    rows = [states(sum(counts[row] for counts in rounds), batch=1) for row in range(3)]
    alone = [layer(row)[0] for row in rows]
    cache, done = KVCache(), [0, 0, 0]
    for counts in rounds:
        new = torch.zeros(3, max(counts), MODEL)
        for row, count in enumerate(counts):
            new[row, :count] = rows[row][0, done[row] : done[row] + count]
        found = layer(new, cache=cache, counts=torch.tensor(counts))
        for row, count in enumerate(counts):
            wanted = alone[row][done[row] : done[row] + count]
            torch.testing.assert_close(found[row, :count], wanted, atol=2e-6, rtol=0)
            done[row] += count


def test_a_ragged_cache_needs_no_counts_for_full_rows() -> None:
    layer = MultiHeadAttention(MODEL, 3, causal=True, rotary=Rotary(4)).eval()
    rows = [states(6, batch=1), states(4, batch=1)]
    cache = KVCache()
    start = torch.zeros(2, 5, MODEL)
    start[0], start[1, :3] = rows[0][0, :5], rows[1][0, :3]
    layer(start, cache=cache, counts=torch.tensor([5, 3]))
    last = layer(torch.cat([rows[0][:, 5:], rows[1][:, 3:]]), cache=cache)
    for row in range(2):
        torch.testing.assert_close(last[row], layer(rows[row])[0, -1:], atol=2e-6, rtol=0)


def test_a_sliding_cache() -> None:
    layer = MultiHeadAttention(MODEL, 3, causal=True, window=3, rotary=Rotary(4)).eval()
    c = states(41)
    cache = SlidingKVCache(3)
    steps = [layer(part, cache=cache) for part in torch.split(c, [7] + [1] * 34, dim=1)]
    torch.testing.assert_close(torch.cat(steps, dim=1), layer(c), atol=2e-6, rtol=0)


def test_cross_attention_projects_the_context_once() -> None:
    layer = MultiHeadAttention(MODEL, 6, kv_heads=3, context=7, bias=True)
    c, context = states(), states(11, 7)
    mask = masks.lengths(torch.tensor([11, 4]))
    full = layer(c, context, mask=mask)
    cache = KVCache()
    first = layer(c[:, :2], context, mask=mask, cache=cache)
    nn.init.zeros_(layer.key.weight)  # nobody asks for it again
    rest = [layer(c[:, i : i + 1], mask=mask, cache=cache) for i in range(2, QUERIES)]
    torch.testing.assert_close(torch.cat([first, *rest], dim=1), full, atol=1e-6, rtol=0)
    assert cache.length == 11


def test_masks_and_biases_reach_the_scores() -> None:
    layer = MultiHeadAttention(MODEL, 3)
    c = states()
    hidden = torch.ones(QUERIES, QUERIES).tril().bool()
    causal = MultiHeadAttention(MODEL, 3, causal=True)
    causal.load_state_dict(layer.state_dict())
    torch.testing.assert_close(layer(c, mask=hidden), causal(c), atol=1e-6, rtol=0)
    as_bias = torch.where(hidden, 0.0, -math.inf)
    torch.testing.assert_close(layer(c, bias=as_bias), causal(c), atol=1e-6, rtol=0)
    bias = relative_bias(torch.randn(8, 3), relative_buckets(5, 5, buckets=8, max_distance=16))
    assert not layer(c, bias=bias).allclose(layer(c))


@EVERY
@pytest.mark.parametrize("context", [None, 7])
def test_gradients_reach_every_parameter(options: dict[str, Any], context: int | None) -> None:
    if context is not None:
        options = {name: given for name, given in options.items() if name != "rotary"}
    layer = MultiHeadAttention(MODEL, 3, causal=context is None, context=context, **options)
    c, source = states(), None if context is None else states(11, context)
    layer(c, source).square().sum().backward()
    for name, parameter in layer.named_parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all(), name
        if name != "key.bias":  # it shifts all scores of a row alike
            assert parameter.grad.abs().max() > 1e-7, name


def test_dropout_only_in_training_and_right_on_average() -> None:
    layer = MultiHeadAttention(MODEL, 3, dropout=0.4, causal=True)
    c = states()
    plain = layer.eval()(c)
    assert plain.equal(layer(c))
    layer.train()
    assert not layer(c).equal(layer(c))
    with torch.no_grad():
        many = layer(c[:1].expand(3000, QUERIES, MODEL))
    torch.testing.assert_close(many.mean(0), plain[0], atol=0.05, rtol=0)
    assert many.std(0).max() > 0.1
    without = MultiHeadAttention(MODEL, 3, causal=True)
    without.load_state_dict(layer.state_dict())
    assert without.train()(c).equal(plain)


def test_dropout_drops_whole_weights() -> None:
    """With one key, its weight is 1: dropped it gives nothing, kept it gives 1 / (1 - dropout)."""
    layer = MultiHeadAttention(MODEL, 3, dropout=0.5)
    one = states(1, batch=500)
    value = layer.value(one)
    kept = layer.output.weight.pinverse() @ layer(one)[:, 0].T  # the mixed values, head by head
    for head in range(3):
        rows = slice(4 * head, 4 * head + 4)
        ratio = kept[rows].T / value[:, 0, rows]
        share = (ratio - 2).abs().amax(1) < 1e-2
        assert ((ratio.abs().amax(1) < 1e-2) | share).float().mean() > 0.97
        assert 0.4 < share.float().mean() < 0.6


def test_a_prefill_whose_longest_row_is_shorter_than_its_padding() -> None:
    torch.manual_seed(0)
    layer = MultiHeadAttention(12, 3, causal=True).eval()
    states = torch.randn(2, 7, 12)
    counts = torch.tensor([5, 2])
    together = layer(states, cache=KVCache(), counts=counts)
    for row, count in enumerate(counts.tolist()):
        alone = layer(states[row : row + 1, :count])
        torch.testing.assert_close(together[row, :count], alone[0], atol=1e-6, rtol=0)
