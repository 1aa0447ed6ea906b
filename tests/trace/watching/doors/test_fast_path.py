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
