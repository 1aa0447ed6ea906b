from __future__ import annotations

import numpy as np
import pytest
import torch

import clearhead as ch
from clearhead.explain.pictures import Mark
from clearhead.explain.sources import head_names, pooled, sources_of
from clearhead.trace.head_view import HeadView

MARKS = [Mark(text, 0, 0, False, (i,)) for i, text in enumerate(["a", "b", "c", "d", "e"])]


def watched(values: bool) -> HeadView:
    torch.manual_seed(3)
    module = ch.MultiHeadAttention(15, 3, key_dim=7, value_dim=5).eval()
    with torch.no_grad(), ch.watch(module, values=values) as seen:
        module(torch.randn(1, 5, 15))
    return seen["L0"]


def test_heads_are_named() -> None:
    view = watched(False)
    assert head_names(view) == ["L0H0", "L0H1", "L0H2"]
    assert head_names(view[2]) == ["L0H2"]


def test_sources_in_their_strongest_head_without_hidden_and_empty_ones() -> None:
    weights = torch.tensor([[0.5, 0.1, 0.0, 0.4, 0.0], [0.2, 0.0, 0.0, 0.1, 0.7],
                            [0.9, 0.0, 0.0, 0.1, 0.0]])  # fmt: skip
    strengths = weights.amax(dim=0).numpy()
    found = sources_of([watched(False)], weights, strengths, MARKS, [0], MARKS[4])
    assert [(one.mark.text, one.head) for one in found] == [
        ("e", "L0H1"), ("d", "L0H0"), ("b", "L0H0"),
    ]  # fmt: skip
    assert [one.weight for one in found] == [0.7, 0.4, 0.1]
    assert {one.value_weight for one in found} == {None}


def test_kept_values_give_weights_by_value() -> None:
    view = watched(True)
    weights = view.weights()[:, 4]
    strengths = np.asarray(weights.amax(dim=0).numpy())
    found = sources_of([view], weights, strengths, MARKS, [], MARKS[4])
    best = found[0]
    head, record = int(best.head[-1]), view.record
    assert record.value is not None
    row = weights[head] * record.value[0, head].norm(dim=1)
    assert best.value_weight == pytest.approx(float(row[best.column] / row.sum()), abs=1e-4)


@pytest.mark.parametrize(("pool", "expected"), [("max", 0.7), ("sum", 1.3), ("mean", 1.3 / 3)])
def test_heads_are_pooled_over_layers_with_different_numbers(pool: str, expected: float) -> None:
    layers = [torch.tensor([[0.5], [0.1]]), torch.tensor([[0.7]])]
    found, count = pooled(iter(layers), pool)
    assert count == 3
    assert float(found) == pytest.approx(expected)
