"""Functions of the decoding kernel against float64."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from clearhead.attention.kernels import decode as decode_kernel


def compiled(name: str) -> Any:
    part = getattr(decode_kernel, name)
    return numba.njit(lambda x: part(x))


def ulps(got: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> float:
    return float(np.max(np.abs(got - wanted) / np.spacing(np.abs(wanted).astype(np.float32))))


def test_exp_is_accurate_to_the_last_bit_or_two() -> None:
    exp = compiled("exp")
    x = -np.concatenate([np.geomspace(1e-9, 87, 40_000), np.linspace(0, 87, 40_000)])
    x = x.astype(np.float32)
    got = np.array([exp(number) for number in x], np.float64)
    assert ulps(got, np.exp(x.astype(np.float64))) < 1.5
    assert exp(np.float32(0)) == 1
    for number in (-88, -104, -1e4, -1e38, -np.inf):
        assert exp(np.float32(number)) == 0
    assert np.isnan(exp(np.float32(np.nan)))


def test_tanh_is_accurate_to_a_few_bits() -> None:
    tanh = compiled("tanh")
    x = np.concatenate([np.geomspace(1e-9, 60, 20_000), np.linspace(0.01, 12, 20_000)])
    x = np.concatenate([x, -x]).astype(np.float32)
    got = np.array([tanh(number) for number in x], np.float64)
    assert ulps(got, np.tanh(x.astype(np.float64))) < 4
    assert tanh(np.float32(0)) == 0
    assert tanh(np.float32(np.inf)) == 1
    assert tanh(np.float32(-np.inf)) == -1
    assert np.isnan(tanh(np.float32(np.nan)))
