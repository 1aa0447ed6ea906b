from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._C import _len_torch_dispatch_stack
from torch.nn import functional

from clearhead.attention.observers import OBSERVERS
from clearhead.errors import InputError
from clearhead.models.build import build
from clearhead.models.config import ModelConfig
from clearhead.models.decoder import Decoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.trace.watching.watch import watch
from clearhead.trace.watching.watchers import watchers
from tests.shared.recorded_weights import weights_of

DECODER: dict[str, Any] = {
    "kind": "decoder", "vocab": 31, "context": 64, "model": 36, "layers": 3, "heads": 6,
    "kv_heads": 2, "feed_forward": 11,
}  # fmt: skip
OPTIONS: dict[str, dict[str, Any]] = {
    "rotary": {},
    "window": {"window": 4},
    "softcap": {"attention_softcap": 0.8},
    "sinks": {"sinks": True},
    "alibi": {"positions": "alibi"},
    "relative": {"positions": "relative", "relative_buckets": 6, "relative_distance": 11},
    "narrow values": {"value_dim": 3},
}


def decoder(**options: Any) -> Decoder:
    torch.manual_seed(0)
    model = build(ModelConfig(**{**DECODER, **options}))
    assert isinstance(model, Decoder)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.2).add_(0.05 * torch.randn_like(parameter))
    return model.eval()


def ids(batch: int, length: int) -> Tensor:
    return torch.randint(0, 31, (batch, length), generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("option", OPTIONS)
def test_our_decoder_with_every_option(option: str) -> None:
    model = decoder(**OPTIONS[option])
    with torch.no_grad():
        plain = model(ids(2, 13))
        with watch(model, values=True) as seen:
            watched = model(ids(2, 13))
    assert torch.equal(plain, watched)
    assert [layer.name for layer in seen.layers] == ["L0", "L1", "L2"]
    assert seen.layers[0].path == "stack.blocks.0.attention"
    assert all(layer.causal and layer.kind == "self" for layer in seen.layers)
    proof = seen.verify(rows=None)
    assert proof.exact, str(proof)


@pytest.mark.parametrize("option", OPTIONS)
def test_our_cached_steps_are_stitched_to_the_full_forward(option: str) -> None:
    model, text = decoder(**OPTIONS[option]), ids(2, 11)
    cache = model.new_cache()
    with torch.no_grad():
        with watch(model, values=True) as stitched:
            model(text[:, :6], cache=cache)
            for step in range(6, 11):
                model(text[:, step : step + 1], cache=cache)
        with watch(model, values=True) as whole:
            model(text)
    assert len(stitched.runs) == 1
    assert stitched.verify(rows=None).exact
    for one, other in zip(stitched.records, whole.records, strict=True):
        assert (weights_of(one) - weights_of(other)).abs().max() < 1e-6
        assert one.facts.causal


def test_rows_of_different_lengths_keep_their_own_keys() -> None:
    model, text = decoder(), ids(2, 9)
    real = torch.ones(2, 5, dtype=torch.bool)
    real[1, 3:] = False
    cache = model.new_cache()
    with torch.no_grad():
        with watch(model, values=True) as seen:
            model(text[:, :5], real=real, cache=cache)
            for step in range(5, 9):
                model(text[:, step : step + 1], cache=cache)
        alone = torch.cat([text[1:, :3], text[1:, 5:]], dim=1)
        with watch(model) as single:
            model(alone)
    assert len(seen.runs) == 1
    record, reference = seen.records[2], single.records[2]
    assert record.query.shape[2] == 9
    weights, expected = weights_of(record)[1], weights_of(reference)[0]
    assert (weights[:, 5:, :7] - expected[:, 3:]).abs().max() < 1e-6


def test_inference_mode_leaves_nothing_that_cannot_be_used_outside() -> None:
    model, text = decoder(), ids(2, 7)
    cache = model.new_cache(capacity=3)
    with torch.inference_mode(), watch(model, values=True) as seen:
        model(text[:, :4], cache=cache)
        model(text[:, 4:5], cache=cache)
        model(text[:, 5:], cache=cache)
    assert seen.layers[0].queries == seen.layers[0].keys == 7
    assert seen.verify(rows=None).exact


def test_a_checkpointed_forward_is_seen_once() -> None:
    from torch.utils.checkpoint import checkpoint

    class Checkpointed(Net):
        def forward(self, states: Tensor, **options: Any) -> Tensor:
            for block in self.blocks:
                states = states + checkpoint(block, states, use_reentrant=False)
            return states

    net = Checkpointed(Attention(20, 4), Attention(20, 4))
    with watch(net) as seen:
        net(torch.randn(2, 5, 20, requires_grad=True)).sum().backward()
    assert len(seen.runs) == 1
    assert [layer.name for layer in seen.layers] == ["L0", "L1"]


def test_a_cropped_cache_goes_on_in_a_run_of_its_own() -> None:
    model, text = decoder(), ids(2, 9)
    cache = model.new_cache()
    with torch.no_grad(), watch(model, values=True) as seen:
        model(text, cache=cache)
        cache.crop(5)
        model(text.flip(1)[:, :2], cache=cache)
    assert [run.layers[0].queries for run in seen.runs] == [9, 7]
    assert seen.layers[0].queries == seen.layers[0].keys == 7
    assert all(run.verify().exact for run in seen.runs)


def test_our_encoder_decoder_has_three_kinds_of_layers() -> None:
    torch.manual_seed(1)
    config = ModelConfig(
        kind="encoder-decoder", vocab=31, context=64, model=18, layers=3, encoder_layers=2,
        heads=3, feed_forward=11,
    )  # fmt: skip
    model = build(config).eval()
    assert isinstance(model, EncoderDecoder)
    source, target = ids(2, 7), ids(2, 5)
    real = torch.ones_like(source, dtype=torch.bool)
    real[1, 4:] = False
    with torch.no_grad(), watch(model, values=True) as seen:
        model(source, target, source_real=real)
    names = [layer.name for layer in seen.layers]
    assert names == ["E0", "E1", "L0", "C0", "L1", "C1", "L2", "C2"]
    assert [layer.kind for layer in seen.layers[:4]] == ["self", "self", "self", "cross"]
    assert [layer.causal for layer in seen.layers[:4]] == [False, False, True, False]
    assert seen.records[3].visible(1, range(5), range(7))[0, 0].tolist() == [True] * 4 + [False] * 3  # type: ignore[index]
    assert seen.verify(rows=None).exact


def test_our_dropout_shows_the_weights_before_it() -> None:
    model = decoder(dropout=0.4)
    for block in model.stack.blocks:
        block.attention.train()  # type: ignore[union-attr]
    torch.manual_seed(5)
    plain = model(ids(2, 7))
    torch.manual_seed(5)
    with watch(model) as seen:
        watched = model(ids(2, 7))
    assert torch.equal(plain, watched)
    assert seen.missed == ""
    assert "weights before dropout" in seen.layers[0].note
    model.eval()
    with watch(model) as calm, torch.no_grad():
        model(ids(2, 7))
    difference = weights_of(seen.records[0]) - weights_of(calm.records[0])
    assert difference.abs().max() < 1e-6  # the first layer's input had no dropout


class Attention(nn.Module):
    """What a vision transformer of timm does."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.qkv, self.proj = (
            heads,
            nn.Linear(width, 3 * width),
            nn.Linear(width, width),
        )

    def forward(self, states: Tensor, mask: Tensor | None = None) -> Tensor:
        batch, length, width = states.shape
        parts = self.qkv(states).reshape(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        query, key, value = parts.unbind(0)
        mixed = self.mix(query, key, value, mask)
        return self.proj(mixed.transpose(1, 2).reshape(batch, length, width))  # type: ignore[no-any-return]

    def mix(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        return functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)


class Spelled(Attention):
    """What a textbook does."""

    def mix(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        return functional.softmax(scores, dim=-1) @ value


class Summed(Attention):
    def mix(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        scores = torch.einsum("bhid,bhjd->bhij", query * 0.3, key)
        if mask is not None:
            scores = torch.where(mask, scores, -1e9)
        return torch.einsum("bhij,bhjd->bhid", scores.softmax(dim=-1), value)


class StrangeAttention(Attention):
    """Nothing that a softmax of scores could explain."""

    def mix(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        return torch.relu(query @ key.transpose(-2, -1)) @ value


class Net(nn.Module):
    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(layers)

    def forward(self, states: Tensor, **options: Any) -> Tensor:
        for block in self.blocks:
            states = states + block(states, **options)
        return states


@pytest.mark.parametrize("kind", [Attention, Spelled, Summed])
@pytest.mark.parametrize("masked", [False, True])
def test_whatever_way_attention_is_written(kind: type[Attention], masked: bool) -> None:
    torch.manual_seed(0)
    net = Net(kind(20, 4), kind(20, 4))
    states = torch.randn(3, 7, 20)
    mask = torch.ones(7, 7, dtype=torch.bool).tril() if masked else None
    plain = net(states, mask=mask)
    with watch(net, values=True) as seen:
        watched = net(states, mask=mask)
    assert torch.equal(plain, watched)
    assert [layer.name for layer in seen.layers] == ["L0", "L1"]
    assert seen.layers[1].path == "blocks.1"
    assert seen.layers[0].causal is masked
    assert seen.layers[0].heads == 4
    assert seen.verify(rows=None).exact
    assert str(seen.coverage) == "2 of 2 attention modules watched"


def test_what_was_not_seen_is_said() -> None:
    net = Net(Attention(20, 4), StrangeAttention(20, 4), Attention(20, 4))
    with watch(net) as seen:
        net(torch.randn(3, 7, 20))
    assert seen.missed == (
        "2 of 3 attention modules watched; `blocks.1` computes attention by itself"
    )
    assert seen.coverage.unseen == {"blocks.1": "computes attention by itself"}


def test_a_module_that_is_not_called_attention() -> None:
    class Mixer(nn.Module):
        def forward(self, states: Tensor) -> Tensor:
            return functional.scaled_dot_product_attention(states, states, states)

    net = Net(Mixer(), Mixer())
    with watch(net, values=True) as seen:
        net(torch.randn(2, 5, 8))
    assert [(layer.name, layer.path) for layer in seen.layers] == [
        ("L0", "blocks.0"),
        ("L1", "blocks.1"),
    ]
    assert seen.layers[0].heads == 1
    assert seen.verify(rows=None).exact


def test_a_shared_layer_is_a_layer_each_time() -> None:
    shared = Attention(20, 4)
    net = Net(shared, shared, shared)
    with watch(net, values=True) as seen, torch.no_grad():
        net(torch.randn(2, 5, 20))
    assert [layer.name for layer in seen.layers] == ["L0", "L1", "L2"]
    assert len(seen.runs) == 1
    assert seen.verify(rows=None).exact


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("masks", ["none", "causal", "padding", "both"])
def test_torch_multihead_attention(training: bool, need_weights: bool, masks: str) -> None:
    torch.manual_seed(0)
    layer = nn.MultiheadAttention(20, 4, batch_first=True, dropout=0.3 if training else 0.0)
    layer.train(training)
    states, options = torch.randn(3, 7, 20), {}
    if masks in ("causal", "both"):
        options["attn_mask"] = torch.ones(7, 7, dtype=torch.bool).triu(1)
    if masks in ("padding", "both"):
        options["key_padding_mask"] = torch.arange(7) >= torch.tensor([[7], [4], [6]])
    reference = nn.MultiheadAttention(20, 4, batch_first=True).eval()
    reference.load_state_dict(layer.state_dict())
    _, expected = reference(states, states, states, average_attn_weights=False, **options)
    torch.manual_seed(7)
    plain = layer(states, states, states, need_weights=need_weights, **options)
    torch.manual_seed(7)
    with watch(layer) as seen:
        watched = layer(states, states, states, need_weights=need_weights, **options)
    assert torch.equal(plain[0], watched[0])
    assert (weights_of(seen.records[0]) - expected).abs().max() < 1e-6
    assert seen.layers[0].kind == "self"
    assert seen.layers[0].causal is (masks in ("causal", "both"))
    assert ("before dropout" in seen.layers[0].note) is training


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("grad", [False, True])
def test_torch_transformer(training: bool, grad: bool) -> None:
    torch.manual_seed(0)
    model = nn.Transformer(20, 4, 2, 3, 11, dropout=0.0, batch_first=True).train(training)
    source, target = torch.randn(3, 7, 20), torch.randn(3, 5, 20)
    padding = torch.zeros(3, 7).masked_fill(
        torch.arange(7) >= torch.tensor([[7], [4], [6]]), -torch.inf
    )
    options: dict[str, Any] = {
        "tgt_mask": nn.Transformer.generate_square_subsequent_mask(5),
        "src_key_padding_mask": padding,
        "memory_key_padding_mask": padding,
    }
    with torch.set_grad_enabled(grad):
        plain = model(source, target, **options)
        with watch(model, values=True) as seen:
            watched = model(source, target, **options)
    assert torch.allclose(plain, watched, atol=1e-5)
    if grad or training:
        assert torch.equal(plain, watched)  # unwatched inference takes torch's one fused layer
    names = [layer.name for layer in seen.layers]
    assert names == ["E0", "E1", "L0", "C0", "L1", "C1", "L2", "C2"]
    assert seen.layers[2].causal and not seen.layers[0].causal
    assert seen.layers[3].kind == "cross" and seen.layers[3].keys == 7
    assert torch.backends.mha.get_fastpath_enabled()
    assert seen.verify(rows=None).exact


def test_gradients_are_those_of_the_unwatched_run() -> None:
    torch.manual_seed(0)
    net = Net(Attention(20, 4), Spelled(20, 4))
    states = torch.randn(3, 7, 20)
    gradients = []
    for watched in (False, True):
        net.zero_grad()
        if watched:
            with watch(net) as seen:
                net(states).square().sum().backward()
            assert not any(record.query.requires_grad for record in seen.records)
        else:
            net(states).square().sum().backward()
        gradients.append([parameter.grad for parameter in net.parameters()])
    for one, other in zip(*gradients, strict=True):
        assert one is not None and other is not None
        assert torch.equal(one, other)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_against_float64_from_the_same_numbers(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    net = Net(Attention(20, 4), Spelled(20, 4)).to(dtype)
    with watch(net) as seen, torch.no_grad():
        net(torch.randn(3, 7, 20, dtype=dtype))
    for record in seen.records:
        assert record.query.dtype == record.facts.dtype == dtype
        scores = record.query.double() @ record.key.double().transpose(2, 3) * record.facts.scale
        assert (weights_of(record) - torch.softmax(scores, dim=-1)).abs().max() < 2e-6


@pytest.mark.parametrize("kind", [Attention, Spelled])
def test_rows_that_see_nothing_have_no_weights(kind: type[Attention]) -> None:
    net = Net(kind(20, 4))
    mask = torch.ones(7, 7, dtype=torch.bool)
    mask[2] = False
    with watch(net) as seen, torch.no_grad():
        net(torch.randn(1, 7, 20), mask=mask)
    weights = weights_of(seen.records[0])
    assert weights[0, :, 2].eq(0).all()
    assert torch.isfinite(weights).all()
    assert (weights.sum(-1)[0, :, [0, 1, 3, 4, 5, 6]] - 1).abs().max() < 1e-6


def test_only_the_layers_and_heads_asked_for() -> None:
    model = decoder()
    with torch.no_grad():
        with watch(model) as everything:
            model(ids(2, 7))
        with watch(model, layers=[0, "L2"], heads=[4, 1]) as some:
            model(ids(2, 7))
        with watch(model, heads="L1H5") as one:
            model(ids(2, 7))
        with watch(model, layers="stack.blocks.1.attention") as by_path:
            model(ids(2, 7))
    assert [layer.name for layer in some.layers] == ["L0", "L2"]
    record = some.records[1]
    assert record.head_numbers == (1, 4) and record.facts.heads == 6
    assert torch.equal(weights_of(record), weights_of(everything.records[2])[:, [1, 4]])
    assert [record.head_numbers for record in one.records] == [(5,)]
    assert [layer.name for layer in by_path.layers] == ["L1"]
    assert some.nbytes < everything.nbytes / 3


def test_a_forward_that_does_not_go_on_is_a_new_run() -> None:
    model = decoder()
    with torch.no_grad(), watch(model) as seen:
        model(ids(2, 7))
        model(ids(3, 5))
    assert [run.layers[0].queries for run in seen.runs] == [7, 5]
    assert seen.layers[0].batch == 3
    assert seen.runs[-1] is seen


def test_nothing_is_kept_that_the_model_writes_to_later() -> None:
    model, text = decoder(), ids(1, 9)
    cache = model.new_cache(capacity=20)
    with torch.no_grad(), watch(model) as seen:
        model(text, cache=cache)
    before = seen.records[0].key.clone()
    cache.reset()
    assert torch.equal(seen.records[0].key, before)


def test_memory_is_queries_keys_and_one_number_a_row() -> None:
    model = decoder()
    with torch.no_grad(), watch(model) as seen:
        model(ids(2, 13))
    record = seen.records[0]
    batch, heads, kv_heads, width = 2, 6, 2, 6
    probes = 4 * (heads + kv_heads)  # projections of values and outputs
    assert record.nbytes == 4 * batch * 13 * (heads * width + kv_heads * width + heads + probes)
    for tensor in (record.query, record.key):
        assert tensor.untyped_storage().nbytes() <= 1.25 * tensor.nbytes


def test_watches_may_be_nested() -> None:
    outer_net, inner_net = Net(Attention(20, 4), Spelled(20, 4)), decoder()
    with torch.no_grad(), watch(outer_net) as outer:
        outer_net(torch.randn(2, 5, 20))
        with watch(inner_net) as inner, watch(outer_net, layers=1) as again:
            inner_net(ids(2, 7))
            outer_net(torch.randn(2, 3, 20))
    assert [run.layers[0].queries for run in outer.runs] == [5, 3]
    assert [layer.queries for layer in inner.layers] == [7, 7, 7]
    assert [(layer.name, layer.queries) for layer in again.layers] == [("L1", 3)]
    assert watchers() == () and OBSERVERS.watching == ()


def test_other_threads_are_not_seen() -> None:
    net, model = Net(Attention(20, 4)), decoder()
    with torch.no_grad(), watch(net) as seen, watch(model) as ours:
        for run in (lambda: net(torch.randn(2, 5, 20)), lambda: model(ids(2, 7))):
            thread = threading.Thread(target=run)
            thread.start()
            thread.join()
    assert seen.layers == [] and ours.layers == []


def hooks(model: nn.Module) -> list[int]:
    return [
        len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules()
    ]


def test_everything_is_left_as_it_was_after_an_error() -> None:
    class Broken(Attention):
        def mix(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
            raise RuntimeError("broken on purpose")

    net = Net(Attention(20, 4), Broken(20, 4))
    states = torch.randn(2, 5, 20)
    with pytest.raises(RuntimeError, match="broken on purpose"), watch(net) as seen:
        net(states)
    assert [layer.name for layer in seen.layers] == ["L0"]
    assert sum(hooks(net)) == 0
    assert watchers() == () and OBSERVERS.watching == ()
    assert _len_torch_dispatch_stack() == 0
    assert not torch.overrides._get_current_function_mode_stack()  # type: ignore[no-untyped-call]


def test_an_error_within_the_block_may_be_caught_there() -> None:
    net = Net(Attention(20, 4))
    with watch(net) as seen, torch.no_grad():
        with pytest.raises(RuntimeError):
            net(torch.randn(2, 5, 19))
        net(torch.randn(2, 5, 20))
    assert [layer.path for layer in seen.layers] == ["blocks.0"]


def test_a_block_without_attention() -> None:
    net = Net(Attention(20, 4))
    with watch(net) as seen:
        torch.randn(3).sum()
    assert seen.layers == []
    with pytest.raises(InputError, match="no attention was seen: no attention ran"):
        seen["L0H0"]


def test_bad_input() -> None:
    net = Net(Attention(20, 4))
    with pytest.raises(InputError, match=r"watch wants a torch model .*; got function"):
        watch(lambda: None).__enter__()
    with pytest.raises(InputError, match="layers count from 0; got -1"):
        watch(net, layers=[-1]).__enter__()
    with pytest.raises(InputError, match="layers is empty"):
        watch(net, layers=[]).__enter__()
    with pytest.raises(InputError, match=r'heads are numbers or names such as "L16H5"; got \'H5'):
        watch(net, heads="H5").__enter__()
    with (
        pytest.raises(InputError, match=r"L0H9: this layer has 4 heads, 0 … 3"),
        watch(net, heads=9),
    ):
        net(torch.randn(2, 5, 20))
    for layers in ("L40", [0, 7], "no.such.path", ["L0", "E0"]):
        with (
            pytest.raises(InputError, match=r"not in this model: .+ \(there are L0\)"),
            watch(net, layers=layers),
        ):
            net(torch.randn(2, 5, 20))
    assert watchers() == () and sum(hooks(net)) == 0


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:The PyTorch API of nested")
def test_what_cannot_be_watched_is_refused() -> None:
    net = Net(Attention(20, 4))
    with pytest.raises(InputError, match=r"this model is compiled.*torch.compile hides"):
        watch(torch.compile(net)).__enter__()
    net.blocks[0].compile()
    with pytest.raises(InputError, match=r"compiled \(blocks.0\)"):
        watch(net).__enter__()

    class Jagged(nn.Module):
        def forward(self, states: Tensor) -> Tensor:
            return functional.scaled_dot_product_attention(states, states, states)

    jagged = torch.nested.nested_tensor(
        [torch.randn(2, 3, 8), torch.randn(2, 5, 8)], layout=torch.strided
    )
    with watch(model := Jagged()) as seen:
        model(jagged)
    assert seen.layers == [] and "`` was refused: watching it failed" in seen.missed


def test_something_that_has_a_model() -> None:
    class Holder:
        model, tokenizer = decoder(), None

    with watch(Holder()) as seen, torch.no_grad():
        Holder.model(ids(2, 7))
    assert len(seen.layers) == 3


@pytest.mark.parametrize("closing", [True, False])
def test_memory_is_free_at_once(closing: bool) -> None:
    """No circle keeps what was seen until Python looks for garbage."""
    model = decoder()
    gc.collect()
    gc.disable()
    try:
        with watch(model) as seen, torch.no_grad():
            model(ids(2, 13))
            model(ids(1, 5))
        queries = [weakref.ref(record.query) for run in seen.runs for record in run.records]
        assert len(queries) == 6
        assert all(query() is not None for query in queries)
        if closing:
            seen.close()
        else:
            del seen
        assert [query() for query in queries] == [None] * 6
    finally:
        gc.enable()


def test_causal_attention_with_fewer_queries_shows_all_keys() -> None:
    class Few(nn.Module):
        def forward(self, query: Tensor, key: Tensor) -> Tensor:
            return functional.scaled_dot_product_attention(query, key, key, is_causal=True)

    query, key = torch.randn(1, 2, 3, 8), torch.randn(1, 2, 7, 8)
    with watch(net := Few()) as seen:
        net(query, key)
    scores = (query @ key.mT / 8**0.5).masked_fill(torch.ones(3, 7).triu(1) > 0, -torch.inf)
    assert (seen["L0"].weights() - torch.softmax(scores, -1)[0]).abs().max() < 1e-6
    assert seen.verify().exact


@pytest.mark.parametrize("what", ["query", "key", "value", "output"])
def test_fused_attention_whose_tensors_are_written_over(what: str) -> None:
    class Careless(nn.Module):
        def forward(self, states: Tensor) -> Tensor:
            parts = {name: states * n for n, name in enumerate(("query", "key", "value"), 1)}
            query, key, value = parts.values()
            output = functional.scaled_dot_product_attention(query, key, value)
            {**parts, "output": output}[what].zero_()
            return output

    states = torch.randn(1, 2, 5, 8)
    with torch.no_grad(), watch(net := Careless(), values=True) as seen:
        net(states)
    if seen.layers:
        scores = states @ (2 * states).mT / 8**0.5
        assert (seen["L0"].weights() - torch.softmax(scores, -1)[0]).abs().max() < 1e-6
        assert seen.verify().exact
    else:
        assert "written over" in seen.missed


def test_heads_whose_forward_is_called_in_a_list() -> None:
    class Head(nn.Module):
        def forward(self, states: Tensor) -> Tensor:
            return torch.softmax(states @ states.mT, dim=-1) @ states

    class Heads(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.each = nn.ModuleList(Head() for _ in range(3))

        def forward(self, states: Tensor) -> Tensor:
            parts = zip(self.each, states.chunk(3, dim=2), strict=True)
            return torch.stack([head.forward(part) for head, part in parts], dim=2).flatten(2)

    states = torch.randn(2, 5, 21)
    with watch(net := Heads()) as seen:
        net(states)
    each = torch.stack(states.chunk(3, dim=2))  # (head, batch, …)
    wanted = torch.softmax(each @ each.mT, dim=-1)
    assert [(layer.batch, layer.heads) for layer in seen.layers] == [(2, 3)]
    assert (seen["L0"].of(1).weights() - wanted[:, 1]).abs().max() < 1e-6
    assert seen.missed == "" and seen.verify().exact


@pytest.mark.parametrize("size", [1.0, 100.0])
def test_a_fused_call_whose_scores_outweigh_its_mask(size: float) -> None:
    """A mask is a number: keys that scores bring back are shown."""

    class Fused(nn.Module):
        def forward(self, states: Tensor, mask: Tensor) -> Tensor:
            heads = states.view(2, 7, 3, 5).transpose(1, 2)
            out = functional.scaled_dot_product_attention(heads, heads, heads, attn_mask=mask)
            return out.transpose(1, 2).flatten(2)

    torch.manual_seed(0)
    states, mask = torch.randn(2, 7, 15) * size, torch.full((7, 7), -1e4).triu(1)
    with watch(net := Fused()) as seen:
        net(states, mask)
    heads = states.double().view(2, 7, 3, 5).transpose(1, 2)
    own = torch.softmax(heads @ heads.mT * 5**-0.5 + mask, dim=-1)
    assert bool((own.triu(1) > 0.5).any()) is (size > 1)
    for batch in range(2):
        shown = seen["L0"].of(batch).weights().double()
        torch.testing.assert_close(shown, own[batch], rtol=0, atol=1e-6)
    assert seen.missed == "" and seen.verify().exact
