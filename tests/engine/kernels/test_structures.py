"""C structures and constants: numba reads the fields where ctypes writes them."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from clearhead.engine.kernels import structures

STRUCTURES = [
    structures.Matrix, structures.Norm, structures.Attention, structures.FeedForward,
    structures.Step, structures.Pack,
]  # fmt: skip


@pytest.mark.parametrize("structure", STRUCTURES, ids=lambda structure: structure.__name__)
def test_numpy_has_the_same_layout(structure: type[ctypes.Structure]) -> None:
    record = np.dtype(structure)
    assert record.itemsize == ctypes.sizeof(structure)
    assert record.fields is not None
    for field in structure._fields_:
        assert record.fields[field[0]][1] == getattr(structure, field[0]).offset
    assert len(record.fields) == len({field[0] for field in structure._fields_})


def test_layouts_fit_into_each_other() -> None:
    assert structures.CHUNK % structures.KEYS == 0
    assert structures.GROUP == 2 * structures.TILE == structures.COLUMNS
    assert structures.SCRATCH_BYTES % structures.LINE == 0
    parts = structures.SCORES_BYTES + structures.RESULTS_BYTES + structures.HIDDEN_BYTES
    assert structures.SCRATCH_BYTES == parts == 2048 + 4 * 4160 + 8192
