from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from clearhead.trace.watching.observed_call import ObservedCall
from clearhead.trace.watching.sample_check import FULL, MOST_SPELLED, matches_model, spelled_out


def call() -> ObservedCall:
    torch.manual_seed(0)
    query, key = torch.randn(2, 6, 5, 11), torch.randn(2, 3, 7, 11)
    bias, sinks = torch.randn(1, 6, 1, 7), torch.randn(6)
    scores = query @ key.repeat_interleave(2, 1).transpose(2, 3) * 0.3
    scores = 0.9 * torch.tanh(scores / 0.9) + bias
    scores = torch.cat([scores, sinks[:, None, None].expand(2, 6, 5, 1)], dim=3)
    weights = torch.softmax(scores, dim=3)[..., :-1]
    return ObservedCall(
        query, key, None, scale=0.3, output=None, bias=bias, sinks=sinks, softcap=0.9,
        weights=weights,
    )  # fmt: skip


def test_right_weights_match_in_every_form() -> None:
    observed = call()
    assert observed.weights is not None and matches_model(observed)
    dropped = observed.weights * 2
    dropped[..., 3] = 0
    assert matches_model(replace(observed, weights=dropped, dropout=0.5, after_dropout=True))


@pytest.mark.parametrize(
    "wrong",
    [{"scale": 0.31}, {"softcap": None}, {"bias": None}, {"sinks": None}, {"weights": None}],
)
def test_any_wrong_part_is_found(wrong: dict[str, object]) -> None:
    assert not matches_model(replace(call(), **wrong))  # type: ignore[arg-type]


def test_under_dropout_every_row_is_compared_however_many_there_are() -> None:
    """Nothing else would find the one: the layer's output is random then."""
    torch.manual_seed(0)
    query, key = torch.randn(1, 2, 600, 5), torch.randn(1, 2, 600, 5)
    weights = torch.softmax(query @ key.mT, dim=-1)
    assert weights.numel() > FULL
    right = ObservedCall(query, key, None, scale=1.0, output=None, weights=weights, dropout=0.5)
    noise = torch.bernoulli(torch.full_like(weights, 0.5)) * 2
    other = weights.clone()
    other[0, 1, 331] = weights[0, 1, 332]
    for own, matches in ((weights, True), (other, False)):
        assert matches_model(replace(right, weights=own * noise, undropped=own)) is matches
        assert matches_model(replace(right, weights=own * noise, after_dropout=True)) is matches


def test_other_shapes_do_not_match() -> None:
    observed = call()
    assert not matches_model(replace(observed, key=observed.key[..., :7]))
    assert not matches_model(replace(observed, weights=observed.weights[:, :5]))  # type: ignore[index]


def test_weights_of_no_formula_are_kept_as_they_came() -> None:
    torch.manual_seed(0)
    weights = torch.softmax(torch.randn(2, 6, 5, 7), dim=-1)
    kept = spelled_out(replace(call(), weights=weights))
    assert not isinstance(kept, str) and kept.spelled and kept.bias is not None
    assert (kept.bias.exp() - weights).abs().max() < 1e-6 and matches_model(kept)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"weights": torch.ones(2, 6, 5, 7)}, "do not sum to 1"),
        ({"dropout": 0.1}, "in a way of its own"),
        ({"weights": torch.ones(1).expand(1, 1, MOST_SPELLED + 1, 1)}, "too many to keep"),
    ],
)
def test_other_weights_are_refused(changes: dict[str, object], reason: str) -> None:
    assert reason in str(spelled_out(replace(call(), **changes)))  # type: ignore[arg-type]
