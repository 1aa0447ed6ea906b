from __future__ import annotations

import torch

from tests.trace.watching.doors.unfused.followed import followed, trail_of


def test_every_softmax_over_the_keys_gives_weights() -> None:
    assert trail_of(lambda s: torch.softmax(s, -1)).kind == "weights"
    assert trail_of(lambda s: torch.log_softmax(s, 2)).kind == "log"
    assert trail_of(lambda s: torch.log_softmax(s, 2).exp()).kind == "weights"
    assert trail_of(lambda s: s.exp()).kind == "exp"


def test_a_softmax_over_the_rows_makes_them_keys() -> None:
    usual = trail_of(lambda s: torch.softmax(s, 2))
    turned = trail_of(lambda s: torch.softmax(s, 1))
    assert turned.query.shape == usual.key.shape and turned.key.shape == usual.query.shape
    assert [dim[0].axis for dim in turned.label] == ["z", "m", "n"]


def test_powers_of_other_bases_are_exponentials() -> None:
    two, ten = trail_of(torch.exp2), trail_of(lambda s: torch.pow(10.0, s))
    assert two.kind == ten.kind == "exp"
    assert abs(two.scale - 0.6931472) < 1e-6 and abs(ten.scale - 2.3025851) < 1e-6


def test_other_softmaxes_are_no_attention() -> None:
    assert followed(lambda s: torch.softmax(s.view(2, 3, 5, 7).flatten(2), -1)) is None
