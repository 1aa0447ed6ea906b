"""W_O of other libraries' models: ablating a head there, against zeros in its columns by hand."""

from __future__ import annotations

import pytest
import torch
import transformers

from clearhead.errors import InputError
from clearhead.explain.interventions.outputs import Outputs
from clearhead.explain.interventions.projection import output_projection


def test_heads_of_transformers_models_can_be_ablated() -> None:
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=47, hidden_size=30, intermediate_size=17, num_hidden_layers=2,
        num_attention_heads=5,
    )  # fmt: skip
    model = transformers.BertModel(config, add_pooling_layer=False).eval()
    path = "encoder.layer.1.attention.self"
    dense = output_projection(model, path, 30, "L1")
    assert dense is model.encoder.layer[1].attention.output.dense
    ids = torch.arange(11)[None]
    with torch.no_grad():
        before = model(ids).last_hidden_state
        kept = dense.weight[:, 18:24].clone()
        with Outputs(dense, joined=True).replaced([slice(18, 24)], None):
            off = model(ids).last_hidden_state
        dense.weight[:, 18:24] = 0.0  # the same by hand
        by_hand = model(ids).last_hidden_state
        dense.weight[:, 18:24] = kept
        after = model(ids).last_hidden_state
    assert torch.allclose(off, by_hand, atol=1e-6) and not torch.allclose(off, before, atol=1e-4)
    assert torch.equal(before, after)
    with pytest.raises(InputError, match="no part of it takes 42 numbers"):
        output_projection(model, path, 42, "L1")
