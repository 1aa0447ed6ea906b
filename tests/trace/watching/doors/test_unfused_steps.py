from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from clearhead.trace.watching.doors.unfused import UnfusedDoor
from clearhead.trace.watching.doors.unfused_steps import STEPS

LEFT, RIGHT = torch.randn(2, 3, 5, 11), torch.randn(2, 3, 7, 11)


def noted(door: UnfusedDoor, function: Callable[..., Tensor], *args: Any, **kwargs: Any) -> Tensor:
    result = function(*args, **kwargs)
    door.note(STEPS[function], result, args, kwargs)
    return result


@pytest.mark.parametrize(
    ("function", "args", "scale"),
    [
        (torch.mul, (0.5,), 0.5),
        (torch.div, (4.0,), 0.25),
        (Tensor.__mul__, (torch.tensor(3.0),), 3.0),
        (torch.add, (2.0,), 1.0),  # the same for all keys
        (Tensor.float, (), 1.0),
        (torch.mul, (-1.0,), None),
        (torch.mul, (torch.ones(7),), None),
    ],
)
def test_what_a_step_does_to_the_scale(
    function: Callable[..., Tensor], args: tuple[Any, ...], scale: float | None
) -> None:
    door = UnfusedDoor()
    scores = noted(door, torch.matmul, LEFT, RIGHT.transpose(2, 3))
    trail = door.trail(noted(door, function, scores, *args))
    assert (None if trail is None else trail.scale) == scale


def test_einsum_and_matmul_begin_the_same_trail() -> None:
    door = UnfusedDoor()
    scores = noted(door, torch.einsum, "bhid,bhjd->bhij", LEFT, RIGHT)
    trail = door.trail(scores)
    assert trail is not None and torch.equal(trail.query, LEFT) and torch.equal(trail.key, RIGHT)


def test_numbers_added_before_the_scale_are_scaled() -> None:
    door = UnfusedDoor()
    scores = noted(door, torch.matmul, LEFT, RIGHT.transpose(2, 3))
    scores = noted(door, torch.mul, noted(door, torch.add, scores, torch.arange(7.0)), 0.5)
    trail = door.trail(scores)
    assert trail is not None and trail.added[0].tolist() == [0, 0.5, 1, 1.5, 2, 2.5, 3]


def test_softmax_over_the_keys_and_dropout() -> None:
    door = UnfusedDoor()
    scores = noted(door, torch.matmul, LEFT, RIGHT.transpose(2, 3))
    assert door.trail(noted(door, torch.softmax, scores, dim=-2)) is None
    weights = noted(door, torch.softmax, scores, dim=-1)
    trail = door.trail(noted(door, functional.dropout, weights, p=0.25))
    assert trail is not None and trail.weights is weights and trail.dropout == 0.25
