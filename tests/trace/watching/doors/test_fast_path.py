from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from clearhead.trace.watching.watch import watch
from tests.shared.recorded_weights import weights_of


def shortened() -> Tensor:
    return torch.arange(7) >= torch.tensor([[7], [4], [6]])


@pytest.mark.parametrize("masks", ["none", "causal", "padding"])
@pytest.mark.parametrize("need_weights", [True, False])
def test_multihead_attention_stays_on_its_fast_path(masks: str, need_weights: bool) -> None:
    torch.manual_seed(0)
    layer, states, options = nn.MultiheadAttention(20, 4, batch_first=True).eval(), None, {}
    states = torch.randn(3, 7, 20)
    if masks == "causal":
        options["attn_mask"] = torch.ones(7, 7, dtype=torch.bool).triu(1)
    if masks == "padding":
        options["key_padding_mask"] = shortened()
    _, expected = layer(states, states, states, average_attn_weights=False, **options)
    with torch.no_grad():
        plain = layer(states, states, states, need_weights=need_weights, **options)[0]
        with watch(layer) as seen:
            watched = layer(states, states, states, need_weights=need_weights, **options)[0]
    assert torch.equal(plain, watched) and seen.missed == ""
    assert (weights_of(seen.records[0]) - expected).abs().max() < 1e-6
    assert seen.verify().exact


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("padded", [True, False])
def test_an_encoder_stays_on_its_fast_path(norm_first: bool, padded: bool) -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(20, 4, 11, batch_first=True, norm_first=norm_first)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=not norm_first).eval()
    states = torch.randn(3, 7, 20)
    options: dict[str, Any] = {"src_key_padding_mask": shortened()} if padded else {}
    with torch.no_grad():
        plain = model(states, **options)
        with watch(model) as seen:
            watched = model(states, **options)
    assert torch.equal(plain, watched) and seen.missed == ""
    assert [layer.path for layer in seen.layers] == ["layers.0.self_attn", "layers.1.self_attn"]
    assert seen.layers[0].heads == 4 and seen.verify().exact


@pytest.mark.parametrize("gradient", [torch.no_grad, torch.inference_mode])
def test_a_layer_alone_stays_on_its_fast_path(gradient: type[torch.no_grad]) -> None:
    torch.manual_seed(0)
    layer, states = nn.TransformerEncoderLayer(20, 4, 11, batch_first=True), torch.randn(3, 7, 20)
    with gradient():
        plain = layer.eval()(states)
        with watch(layer) as seen:
            assert not layer.self_attn._forward_hooks and not layer._forward_hooks
            watched = layer(states)
    assert torch.equal(plain, watched) and [one.path for one in seen.layers] == ["self_attn"]


@pytest.mark.parametrize("gradient", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("norm_first", [True, False])
def test_mixed_precision_computes_the_same(gradient: type[torch.no_grad], norm_first: bool) -> None:
    """torch casts what the layer's kernel calls: queries and keys are those of bfloat16."""

    class Attention(nn.Module):
        """A module whose operations are followed."""

        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.TransformerEncoderLayer(
                20, 4, 11, batch_first=True, norm_first=norm_first
            )
            self.plain = nn.MultiheadAttention(20, 4, batch_first=True)

        def forward(self, states: Tensor) -> Tensor:
            scores = states @ states.mT
            states = self.layer(torch.softmax(scores, dim=-1) @ states)
            return self.plain(states, states, states)[0]  # type: ignore[no-any-return]

    torch.manual_seed(0)
    model, states = Attention().eval(), torch.randn(3, 7, 20)
    for part in (model, model.layer):
        with gradient(), torch.autocast("cpu", dtype=torch.bfloat16):
            plain = part(states)
            with watch(part) as seen:
                watched = part(states)
        assert plain.dtype == watched.dtype and torch.equal(plain, watched) and seen.missed == ""
        assert {record.facts.kind for record in seen.records} == {"self"}
        assert {record.facts.dtype for record in seen.records} == {torch.bfloat16}
        assert seen.verify().exact
