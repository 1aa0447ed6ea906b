from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from clearhead.trace.proving.tolerance import TOLERANCES, USUAL_SCORE, rounding, tolerance_of
from tests.shared.synthetic import Options, synthetic


def test_rows_round_in_proportion_to_their_scores() -> None:
    """By hand: 0.7 · ‖q‖ · ‖k‖ of the longest key, or the log-sum-exp if that is larger."""
    record = synthetic(Options(spread=200.0)).record
    found = rounding(record, 0, [0, 4], record.logsum[0][:, [0, 4]])
    longest = max(float(key.norm()) for key in record.key[0, 0])
    for row, wider in zip((0, 4), found[0].tolist(), strict=True):
        size = 0.7 * float(record.query[0, 0, row].norm()) * longest
        largest = max(size, abs(float(record.logsum[0, 0, row])))
        assert wider == pytest.approx(max(1.0, largest / USUAL_SCORE), rel=1e-5)
    far = torch.full((1, 2), -65_504.0)
    assert rounding(record, 0, [0, 4], far).tolist() == [[65_504 / USUAL_SCORE] * 2]


@pytest.mark.parametrize("dtype", TOLERANCES)
def test_each_precision_has_its_own_and_an_end(dtype: torch.dtype) -> None:
    record = synthetic(Options(dtype=dtype)).record
    tolerance = tolerance_of(record)
    wanted = dtype if record.logsum.dtype == torch.float64 or dtype.itemsize < 8 else torch.float32
    assert tolerance == TOLERANCES[wanted] and tolerance.output < tolerance.largest <= 0.1


def test_float64_whose_sums_are_float32_goes_by_these() -> None:
    record = synthetic(Options(dtype=torch.float64)).record
    record._chunks = [replace(record._chunks[0], sums=record.logsum.float())]
    assert tolerance_of(record) == TOLERANCES[torch.float32]
