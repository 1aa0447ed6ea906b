"""The way of a token: the parts add up to the states, q and k to what attention did."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from clearhead.explain.course.packed import unpacked
from clearhead.explain.course.token_way import token_way
from clearhead.explain.course.tokens import tokenizer_of
from tests.shared.explain_models import decoder


def test_the_parts_lead_from_the_embedding_to_the_final_state() -> None:
    loaded, text = decoder(), "the students opened their books"
    way = token_way(loaded, text)
    tokens = len(way["tokens"])
    sizes = [
        way["heads"] * way["key_dim"], way["kv_heads"] * tokens * way["key_dim"],
        way["kv_heads"] * tokens * way["value_dim"], way["model"], way["hidden"], way["model"],
    ]  # fmt: skip
    state = unpacked(way["embedding"]).astype(np.float64)
    for number, layer in enumerate(way["layers"]):
        parts = np.split(unpacked(layer["numbers"]).astype(np.float64), np.cumsum(sizes)[:-1])
        query = parts[0].reshape(way["heads"], -1)
        keys, values = (part.reshape(way["kv_heads"], tokens, -1) for part in parts[1:3])
        mixes = []
        for head in range(way["heads"]):
            scores = keys[head // way["group"]] @ query[head] * way["scale"]
            weights = np.exp(scores - scores.max())
            mixes.append(weights / weights.sum() @ values[head // way["group"]])
        stack: Any = loaded.model.stack
        output = stack.blocks[number].attention.output.weight.double().numpy()
        assert np.allclose(output @ np.concatenate(mixes), parts[3], atol=1e-5)
        state = state + parts[3] + parts[5]
    assert np.allclose(state, unpacked(way["final"]), atol=1e-5)
    with torch.no_grad():
        logits = loaded.model(torch.tensor([tokenizer_of(loaded).encode(text)]))[0, -1]
    best, share = way["layers"][-1]["top"][0]
    assert abs(share - float(logits.softmax(0).max())) < 1e-4
    assert best.strip() in tokenizer_of(loaded).decode([int(logits.argmax())])
    assert abs(way["logits"][0] - float(logits.max())) < 1e-4
