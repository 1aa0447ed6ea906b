"""Steps of the gradient's kernel, each compiled alone, against NumPy."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest

from clearhead.attention.kernels import tile_gradients as kernel
from clearhead.attention.kernels.tile_product import LINE, ROWS
from clearhead.attention.tile_gradients import Work

generator = np.random.default_rng(3)
KEYS = 3 * ROWS


def draw(*shape: int) -> np.ndarray:
    return generator.normal(size=shape).astype(np.float32)


def work_of(**fields: float) -> Any:
    work = np.zeros(1, np.dtype(Work))
    for name, value in fields.items():
        work[0][name] = value
    return work


@numba.njit
def weigh(works: Any, weights: int, slopes: int, state: int, count: int, softcap: bool) -> None:
    if softcap:
        kernel.weigh(works[0], weights, slopes, state, count, True)
    else:
        kernel.weigh(works[0], weights, slopes, state, count, False)


@numba.njit
def hide(works: Any, weights: int, slopes: int, first: int, start: int, count: int) -> bool:
    kernel.hide(works[0], weights, slopes, first, start, count)
    return kernel.is_hiding(works[0], first, start, start + count)  # type: ignore[no-any-return]


@pytest.mark.parametrize("softcap", [0.0, 1.5])
def test_scores_become_weights_and_gradients_of_scores(softcap: float) -> None:
    weights, slopes, state = draw(KEYS, LINE), draw(KEYS, LINE), draw(2, LINE)
    state[0] += 5  # log-sum-exps are above all scores
    scores, by_weight = weights.astype(np.float64), slopes.astype(np.float64)
    capped = softcap * np.tanh(scores / softcap) if softcap else scores
    wanted = np.exp(capped - state[0])
    by_score = wanted * (by_weight - state[1]) * 0.25
    if softcap:
        by_score *= 1 - (capped / softcap) ** 2
    places = (array.ctypes.data for array in (weights, slopes, state))
    weigh(work_of(scale=0.25, softcap=softcap), *places, KEYS, softcap > 0)
    np.testing.assert_allclose(weights, wanted, atol=1e-6)
    np.testing.assert_allclose(slopes, by_score, atol=1e-6)


@pytest.mark.parametrize(
    ("before", "after", "offset", "first", "start"),
    [(2, 0, 0, 0, 0), (1 << 40, 0, 5, 0, 0), (3, 4, -2, 0, 0), (1 << 40, 1 << 40, 0, 0, 0),
     (1 << 40, 0, 0, LINE, 8), (0, 0, 100, 0, 0)],
)  # fmt: skip
def test_what_is_not_seen_becomes_zero(
    before: int, after: int, offset: int, first: int, start: int
) -> None:
    weights, slopes = np.ones((KEYS, LINE), np.float32), np.ones((KEYS, LINE), np.float32)
    sizes = {"queries": LINE + 3, "keys": KEYS - 1, "offset": offset}
    place = np.arange(LINE)[None] + first
    keys = np.arange(KEYS)[:, None] + start
    ahead = keys - place - offset
    seen = (ahead >= -before) & (ahead <= after) & (keys < KEYS - 1) & (place < LINE + 3)
    work = work_of(before=before, after=after, **sizes)
    hiding = hide(work, weights.ctypes.data, slopes.ctypes.data, first, start, KEYS)
    assert (weights == seen).all() and (slopes == seen).all()
    assert hiding or seen.all()
