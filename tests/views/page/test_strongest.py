from __future__ import annotations

import numpy as np
import torch

from clearhead.explain.pictures import shown_numbers
from clearhead.views.page.strongest import MOST, by_head, fitting_cut, in_units, joined, strongest

ROWS = torch.tensor([[0.5, 0.25, 0.25, 0.0], [0.00004, 0.99991, 0.00005001, 0.0]])


def test_a_short_row_is_kept_whole_in_units() -> None:
    found = strongest(ROWS, hidden=(0, 3))
    assert found.columns.tolist() == [[0, 1, 2, 3]] * 2
    assert found.units.tolist() == [[5000, 2500, 2500, 0], [0, 9999, 1, 0]]
    assert found.hidden.tolist() == [5000, 0]
    assert found.entries == 5
    assert found.left_out.tolist() == [0.0, 0.0]  # rounding is no mass


def test_units_are_the_numbers_that_pictures_show() -> None:
    numbers = torch.rand(97, 89, generator=torch.Generator().manual_seed(3))
    assert (in_units(numbers) == np.rint(shown_numbers(numbers.numpy()) * 10_000)).all()


def test_of_a_long_row_the_strongest_are_kept_and_the_rest_is_added_up() -> None:
    weights = torch.full((1, 101), 0.001)
    weights[0, 7], weights[0, 97] = 0.6, 0.301
    found = strongest(weights, hidden=())
    assert found.entries == MOST
    assert found.columns[0].tolist() == sorted(found.columns[0].tolist())
    assert abs(float(found.left_out[0]) - 0.001 * (101 - MOST)) < 1e-6
    cut = found.cut(20)
    assert cut.columns[0][cut.kept[0]].tolist() == [7, 97]
    assert abs(float(cut.left_out[0]) - 0.099) < 1e-6


def test_the_cut_is_the_smallest_that_fits() -> None:
    found = strongest(ROWS, hidden=())
    assert [fitting_cut([found], most) for most in (5, 4, 2, 1, 0)] == [1, 2, 2501, 5001, 10000]


def test_heads_of_several_runs_are_put_in_order() -> None:
    weights = torch.rand(3, 5, 4, generator=torch.Generator().manual_seed(0))  # head, row, key
    runs = [strongest(part.flatten(0, 1), ()) for part in (weights[:, :2], weights[:, 2:])]
    whole = strongest(weights.flatten(0, 1), ())
    assert (by_head(runs, 3).units == whole.units).all()
    assert joined([whole]).entries == whole.entries
