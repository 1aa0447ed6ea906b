"""Elementwise functions against torch; quantised vectors against NumPy, byte for byte."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from clearhead.engine.engine import engine_runs_here
from tests.shared.engine_steps import dequantised_vectors, quantised_vectors

pytestmark = pytest.mark.skipif(not engine_runs_here(), reason="no OpenMP or half precision here")

Apply = Callable[[int, Any], Any]


@pytest.fixture(scope="module")
def apply() -> Apply:
    """Functions of 16 numbers by number: the activations, then exp and sigmoid."""
    import numba
    from numba import types

    from clearhead.engine.kernels.numbers import activated, sigmoid
    from clearhead.kernels.exponential import exp
    from clearhead.kernels.memory import load_floats, store_floats

    def run(which: int, source: int, target: int) -> None:
        if which == 5:
            store_floats(target, sigmoid(load_floats(source)))
        elif which == 4:
            store_floats(target, exp(load_floats(source)))
        else:
            store_floats(target, activated(load_floats(source), which))

    compiled = numba.cfunc(types.void(*[types.int64] * 3), error_model="numpy")(run)

    def call(which: int, values: Any) -> Any:
        values = np.asarray(values, np.float32)
        result = np.empty_like(values)
        for start in range(0, len(values), 16):
            place = 4 * start
            compiled.ctypes(which, values.ctypes.data + place, result.ctypes.data + place)
        return torch.from_numpy(result)

    return call


X = np.concatenate([np.linspace(-9, 9, 150), [-30.0, 30.0, 0.0, -0.0, 1e-7, -1e-7, 20, -20, 3, -3]])


@pytest.mark.parametrize(
    ("which", "reference"),
    [
        (0, torch.relu),
        (1, torch.nn.functional.gelu),
        (2, lambda x: torch.nn.functional.gelu(x, approximate="tanh")),
        (3, torch.nn.functional.silu),
        (5, torch.sigmoid),
    ],
)
def test_activations(apply: Apply, which: int, reference: Callable[[Any], Any]) -> None:
    assert len(X) % 16 == 0
    wanted = reference(torch.from_numpy(X.astype(np.float32)).double())
    torch.testing.assert_close(apply(which, X).double(), wanted, rtol=1e-5, atol=2e-6)


def test_the_names_of_activations() -> None:
    from clearhead.engine.kernels.numbers import ACTIVATIONS

    assert ACTIVATIONS == ("relu", "gelu", "gelu_tanh", "silu")


def test_exp(apply: Apply) -> None:
    x = np.linspace(-80, 80, 320).astype(np.float32)
    np.testing.assert_allclose(apply(4, x).numpy(), np.exp(x.astype(np.float64)), rtol=1e-6)
    assert apply(4, [-np.inf] * 16).tolist() == [0.0] * 16
    assert apply(4, [0.0] * 16).tolist() == [1.0] * 16


def test_quantised_vectors() -> None:
    import numba
    from numba import types

    from clearhead.engine.kernels.numbers import QUANTISED_GROUP_BYTES, quantise

    compiled = numba.cfunc(types.void(*[types.int64] * 5), error_model="numpy")(
        lambda values, vectors, groups, token, tokens: quantise(
            values, vectors, groups, token, tokens
        )
    )
    tokens, groups = 3, 5
    values = np.random.default_rng(3).normal(size=(tokens, 32 * groups)).astype(np.float32)
    values[:, 64:96] = 0
    values[:, 96:128] *= 1e6
    stored = np.zeros(QUANTISED_GROUP_BYTES * groups * tokens, np.uint8)
    for token in range(tokens):
        compiled.ctypes(values[token].ctypes.data, stored.ctypes.data, groups, token, tokens)
    assert stored.tolist() == quantised_vectors(values).tolist()
    largest = np.abs(values.reshape(-1, 32)).max(-1, keepdims=True)
    found = dequantised_vectors(stored, groups, tokens).numpy()
    error = np.abs(found - values).reshape(-1, 32)
    assert (error <= largest / 32512 * 0.51).all()  # half a step, and the rounding of float32
    assert 32 * (ctypes.sizeof(ctypes.c_int16) + 4) + 20 == QUANTISED_GROUP_BYTES
