from __future__ import annotations

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
    found, beyond = sources_of([watched(False)], weights, MARKS, [0], MARKS[4], "max")
    assert beyond == (1.2, 0.5, 0.1, 0.0)
    assert [(one.mark.text, one.head) for one in found] == [
        ("e", "L0H1"), ("d", "L0H0"), ("b", "L0H0"),
    ]  # fmt: skip
    assert [one.weight for one in found] == [0.7, 0.4, 0.1]
    assert {one.value_weight for one in found} == {None}


def test_kept_values_give_weights_by_value() -> None:
    view = watched(True)
    weights = view.weights()[:, 4]
    found, _ = sources_of([view], weights, MARKS, [], MARKS[4], "max")
    best = found[0]
    head, record = int(best.head[-1]), view.record
    assert record.value is not None
    row = weights[head] * record.value[0, head].norm(dim=1)
    assert best.value_weight == pytest.approx(float(row[best.column] / row.sum()), abs=1e-4)


@pytest.mark.parametrize(
    ("pool", "wanted"), [("mean", [0.2333, 0.2, 0.0333]), ("sum", [0.7, 0.6, 0.1])]
)
def test_pooled_sources_have_the_pooled_numbers_in_their_order(
    pool: str, wanted: list[float]
) -> None:
    weights = torch.tensor([[0.5, 0.1, 0.0, 0.4, 0.0], [0.2, 0.0, 0.0, 0.1, 0.7],
                            [0.9, 0.0, 0.0, 0.1, 0.0]])  # fmt: skip
    found, beyond = sources_of([watched(False)], weights, MARKS, [0], MARKS[4], pool)
    assert [one.weight for one in found] == wanted
    assert [one.mark.text for one in found] == ["e", "d", "b"]
    assert beyond[0] == pytest.approx(sum(wanted), abs=2e-4)


def test_weak_words_are_counted_and_summed() -> None:
    """229 words of 0.00004 are 0.01 of a row, though each is shown as 0.0000."""
    weights = torch.full((1, 5), 0.00004)
    found, beyond = sources_of([watched(False)[0]], weights, MARKS, [], MARKS[4], "max")
    assert len(found) == 5 and beyond[0] == 0.0002


@pytest.mark.parametrize(("pool", "expected"), [("max", 0.7), ("sum", 1.3), ("mean", 1.3 / 3)])
def test_heads_are_pooled_over_layers_with_different_numbers(pool: str, expected: float) -> None:
    layers = [torch.tensor([[0.5], [0.1]]), torch.tensor([[0.7]])]
    found, count = pooled(iter(layers), pool)
    assert count == 3
    assert float(found) == pytest.approx(expected)
