"""What is written down of each head, against the whole map."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from clearhead.attention import masks
from clearhead.attention.dot_product import attention
from clearhead.attention.observers import OBSERVERS
from clearhead.attention.steps import attention_steps
from clearhead.training.head_statistics import HeadObserver, HeadStatistics, _places
from clearhead.training.sizes import language_config, pairs_config

QUERY, KEY = torch.randn(3, 4, 29, 5), torch.randn(3, 2, 29, 5)


@pytest.mark.parametrize("kind", ["causal", "window", "documents", "bias"])
def test_numbers_of_sampled_rows(kind: str) -> None:
    documents = torch.arange(29).div(11, rounding_mode="floor").expand(3, 29)
    kinds: dict[str, Any] = {
        "causal": {"causal": True}, "window": {"causal": True, "window": 7},
        "documents": {"causal": True, "mask": masks.documents(documents)},
        "bias": {"causal": True, "bias": torch.randn(4, 29, 29)},
    }  # fmt: skip
    options = kinds[kind]
    observer = HeadObserver()
    with OBSERVERS.observed_by(observer):
        watched = attention(QUERY, KEY, KEY, **options)
    assert torch.equal(watched, attention(QUERY, KEY, KEY, **options))
    steps = attention_steps(QUERY, KEY, KEY, **options)
    rows = _places(29)
    assert rows[-1] == 28 and len(rows) == 8
    for head in range(4):
        weights, scores = steps.weights[:, head, rows], steps.masked[:, head, rows]
        rows_of_both = zip(
            weights.flatten(0, 1).tolist(), scores.flatten(0, 1).tolist(), strict=True
        )
        entropy, first = 0.0, 0.0
        for row, before in rows_of_both:
            entropy -= sum(weight * math.log2(weight) for weight in row if weight > 0)
            first += next(w for w, s in zip(row, before, strict=True) if s > -math.inf)
        found = observer.found[0][head]
        assert found.entropy == pytest.approx(entropy / 24, abs=1e-4)
        assert found.first == pytest.approx(first / 24, abs=1e-5)
        assert found.score == pytest.approx(float(scores.max()), abs=1e-4)


def test_names() -> None:
    observer = HeadObserver([[], []])
    assert observer.by_name(language_config("tiny", 300, layers=3)) == {}
    for config, names in (
        (language_config("tiny", 300, layers=2), ["L0H0", "L1H0"]),
        (pairs_config("tiny", 300, layers=1, encoder_layers=2, pad=0, start=1, eos=(2,)),
         ["E0H0", "E1H0", "L0H0", "C0H0"]),
    ):  # fmt: skip
        observer = HeadObserver([[HeadStatistics(1.0, 2.0, 0.5)] for _ in names])
        assert list(observer.by_name(config)) == names
