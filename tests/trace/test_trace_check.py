from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from clearhead.trace.trace_check import TraceFaultError, checked_layer, checked_passage, field

LAYER: dict[str, Any] = {
    "name": "L3", "path": "a.3", "kind": "self", "causal": True, "heads": 4, "kv_heads": 2,
    "key_dim": 5, "value_dim": 7, "scale": 0.5, "softcap": None, "dtype": "float32", "note": "",
    "head_numbers": [0, 1, 2, 3],
    "pieces": [{"rows": 2, "keys": 3, "masked": True, "origin": None}],
}  # fmt: skip


def tensors() -> dict[str, Tensor]:
    return {
        "query": torch.zeros(1, 4, 2, 5), "key": torch.zeros(1, 2, 3, 5),
        "logsum": torch.zeros(1, 4, 2), "0.mask.low": torch.zeros(1, 2, dtype=torch.long),
        "0.mask.high": torch.tensor([[2, 3]]),
    }  # fmt: skip


def test_a_sound_layer() -> None:
    record = checked_layer(0, LAYER, tensors().get)
    assert record.facts.name == "L3" and record.facts.dtype == torch.float32
    seen = record.visible(0, range(2), range(3))
    assert seen is not None and seen[0].tolist() == [[True, True, False], [True, True, True]]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"name": "16"}, "is no name of a layer"),
        ({"kind": "both"}, "unknown kind 'both'"),
        ({"dtype": "int8"}, "dtype 'int8'"),
        ({"scale": float("inf")}, "impossible counts, scale or softcap"),
        ({"softcap": -1.0}, "impossible counts, scale or softcap"),
        ({"heads": True}, "'heads' should be int, and is 'True'"),
        ({"heads": 2**40}, "'heads' is an impossible number"),
        ({"key_dim": 6}, r"query is torch.float32 of \(1, 4, 2, 5\); wanted \(1, 4, 2, 6\)"),
        ({"head_numbers": [0, 1, 2, 2]}, "head_numbers do not number its 4 heads"),
        ({"pieces": []}, "its rules do not cover its 2 rows"),
    ],
)
def test_faults_of_the_header(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(TraceFaultError, match=words):
        checked_layer(0, {**LAYER, **changes}, tensors().get)


@pytest.mark.parametrize(
    ("name", "tensor", "words"),
    [
        ("key", None, "its key is missing"),
        ("key", torch.zeros(1, 3, 3, 5), "4 heads cannot share 3 key heads"),
        ("query", torch.zeros(4, 2, 5), "query has the impossible shape"),
        ("logsum", torch.zeros(1, 4, 3), "logsum is torch.float32"),
        ("sinks", torch.zeros(5), r"sinks is .*wanted \(4,\)"),
        ("0.mask.low", torch.zeros(1, 2), "low is torch.float32"),
        ("0.mask.real", torch.ones(1, 2).bool(), r"real is .*wanted \(1, 3\)"),
    ],
)
def test_faults_of_the_tensors(name: str, tensor: Tensor | None, words: str) -> None:
    given = tensors()
    given.pop(name, None)
    if tensor is not None:
        given[name] = tensor
    with pytest.raises(TraceFaultError, match=words):
        checked_layer(0, LAYER, given.get)


def test_fields_have_their_kind() -> None:
    assert field({"scale": 2}, "scale", float) == 2.0
    with pytest.raises(TraceFaultError, match="wanted a JSON object with 'scale', got list"):
        field([], "scale", float)


def test_tokens_lie_in_their_text() -> None:
    found = checked_passage({"text": "ab", "tokens": [[5, "a", 0, 1, False]]})
    assert found.tokens[0].id == 5
    with pytest.raises(TraceFaultError, match="the token 'b' lies outside of its text"):
        checked_passage({"text": "ab", "tokens": [[5, "b", 1, 3, False]]})
    with pytest.raises(TraceFaultError, match=r"a token should be \[id, text"):
        checked_passage({"text": "ab", "tokens": [[5, "b", 1, 2]]})
