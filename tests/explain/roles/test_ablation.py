from __future__ import annotations

import pytest
import torch
import transformers

from clearhead.errors import InputError


def test_heads_of_transformers_models_can_be_ablated() -> None:
    from clearhead.explain.roles.ablation import MeanOutputs, ablated, output_projection
    from clearhead.explain.roles.counts.tally import CountedLayer

    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=47, hidden_size=30, intermediate_size=17, num_hidden_layers=2,
        num_attention_heads=5,
    )  # fmt: skip
    model = transformers.BertModel(config, add_pooling_layer=False).eval()
    layer = CountedLayer("L1", 5, False, "encoder.layer.1.attention.self", 6)
    dense = output_projection(model, layer)
    assert dense is model.encoder.layer[1].attention.output.dense
    ids = torch.arange(11)[None]
    with torch.no_grad():
        before = model(ids).last_hidden_state
        means = MeanOutputs(model, [layer])
        model(ids)
        means.close()
        kept = dense.weight[:, 18:24].clone()
        with ablated(model, layer, 3):
            off = model(ids).last_hidden_state
        dense.weight[:, 18:24] = 0.0  # the same by hand
        by_hand = model(ids).last_hidden_state
        dense.weight[:, 18:24] = kept
        after = model(ids).last_hidden_state
    assert torch.allclose(off, by_hand, atol=1e-6) and not torch.allclose(off, before, atol=1e-4)
    assert torch.equal(before, after)
    assert means.of(layer, 3).shape == (6,)
    unknown = CountedLayer("L1", 7, False, "encoder.layer.1.attention.self", 6)
    with pytest.raises(InputError, match="no part of it takes 42 numbers"):
        output_projection(model, unknown)
