from __future__ import annotations

import torch

from clearhead.trace.zoom.pooling import MASKED, PENDING, divided, pooled_cells

CELLS = torch.tensor(
    [
        [0.1, 0.2, MASKED, MASKED, 0.5],
        [0.3, 0.4, MASKED, 0.6, MASKED],
        [PENDING, MASKED, MASKED, MASKED, PENDING],
    ]
)


def test_numbers_win_over_signs_and_pending_over_masked() -> None:
    largest = pooled_cells(CELLS, 2, "max")
    assert torch.equal(largest, torch.tensor([[0.4, 0.6, 0.5], [PENDING, MASKED, PENDING]]))
    sums = pooled_cells(CELLS, 2, "sum")
    torch.testing.assert_close(sums, torch.tensor([[1.0, 0.6, 0.5], [PENDING, MASKED, PENDING]]))
    assert torch.equal(pooled_cells(CELLS, 1, "sum"), CELLS)


def test_means_count_every_place_of_a_cell_masked_ones_too() -> None:
    sums = pooled_cells(CELLS, 2, "mean")
    means = divided(sums, range(3), range(5), 2)
    wanted = torch.tensor([[1.0 / 4, 0.6 / 4, 0.5 / 2], [PENDING, MASKED, PENDING]])
    torch.testing.assert_close(means, wanted)
