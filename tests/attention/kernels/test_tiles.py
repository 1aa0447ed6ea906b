"""Functions of the kernel over tiles against float64; ../test_tiles.py tests the whole of it."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest

from clearhead.attention.kernels.tiles import capped
from tests.shared.compiled import LANES, on_floats


@pytest.mark.parametrize("softcap", [0.5, 2.0, 50.0])
def test_capped_scores(softcap: float) -> None:
    @numba.njit
    def function(x: Any, cap: Any) -> Any:
        return capped(x, cap)

    caps = np.full(LANES, softcap, np.float32)
    for numbers in np.linspace(-300, 300, 31 * LANES).astype(np.float32).reshape(31, LANES):
        exact = softcap * np.tanh(numbers.astype(np.float64) / softcap)
        np.testing.assert_allclose(on_floats(function, 2)(numbers, caps), exact, rtol=2e-6)
    small = np.linspace(-1e-6, 1e-6, LANES).astype(np.float32)
    np.testing.assert_allclose(on_floats(function, 2)(small, caps), small, rtol=2e-6)
