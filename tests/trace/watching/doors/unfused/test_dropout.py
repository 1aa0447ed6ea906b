from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from clearhead.trace.watching.watch import watch
from tests.trace.watching.doors.unfused.followed import trail_of


def test_torchs_dropout_and_one_by_hand_leave_the_weights_before_them() -> None:
    kept = torch.bernoulli(torch.full((6, 5, 7), 0.75)) / 0.75
    by_torch = trail_of(lambda s: nn.functional.dropout(torch.softmax(s, -1), 0.25))
    by_hand = trail_of(lambda s: torch.softmax(s, -1) * kept)
    for trail in (by_torch, by_hand):
        assert trail.kind == "weights" and trail.dropout == pytest.approx(0.25)
        [source] = trail.before
        assert (source.weights.sum(-1) - 1).abs().max() < 1e-6
    assert trail_of(lambda s: nn.functional.dropout(torch.softmax(s, -1), 0.5, False)).dropout == 0


class Rounding(nn.Module):
    """In half precision, a number for hidden keys is all that is left of a row."""

    def __init__(self) -> None:
        super().__init__()
        self.num_heads = 3

    def forward(self, states: Tensor) -> Tensor:
        numbers = torch.zeros(5, 5, dtype=states.dtype)
        numbers[2] = -1e4
        self.own = torch.softmax(states @ states.mT + numbers, dim=-1)
        return (nn.functional.dropout(self.own, 0.5) @ states).transpose(1, 2).flatten(2)


def test_weights_that_fit_no_formula_are_kept_as_they_were_before_dropout() -> None:
    torch.manual_seed(0)
    model = Rounding().half()
    with watch(model) as seen, torch.no_grad():
        model(2 * torch.randn(1, 3, 5, 7).half())
    assert seen.verify().exact and not seen.missed
    shown = torch.stack([seen[f"L0H{head}"].weights() for head in range(3)])
    assert (shown - model.own[0].float()).abs().max() < 1e-3
