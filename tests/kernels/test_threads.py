"""A function of ours on torch's threads."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from typing import Any

import numba
import numpy as np
import pytest
import torch
from numba import carray, types

from clearhead.kernels import threads as module
from clearhead.kernels.threads import TorchThreads, thread_functions, torch_threads

thread_number, thread_count = thread_functions()
SLOTS = 7


@numba.cfunc(types.void(types.CPointer(types.int64)))
def sign_in(slots: Any) -> None:
    """Each thread writes the number of threads into the slot of its own number, and adds there."""
    array = carray(slots, SLOTS)
    array[thread_number()] += thread_count()


def found() -> TorchThreads:
    threads = torch_threads()
    assert threads is not None
    return threads


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_every_thread_runs_once(count: int) -> None:
    slots = np.zeros(SLOTS, np.int64)
    found().run(sign_in.address, slots.ctypes.data, count)
    assert slots.tolist() == [count] * count + [0] * (SLOTS - count)


def test_all_have_finished_when_it_returns() -> None:
    slots = np.zeros(SLOTS, np.int64)
    for _ in range(1009):
        found().run(sign_in.address, slots.ctypes.data, 3)
    assert slots.tolist() == [3 * 1009] * 3 + [0] * (SLOTS - 3)


def test_takes_a_structure_by_reference() -> None:
    class Slots(ctypes.Structure):
        _fields_ = [("numbers", ctypes.c_int64 * SLOTS)]

    slots = Slots()
    found().run(sign_in.address, ctypes.byref(slots), 2)
    assert list(slots.numbers) == [2, 2, 0, 0, 0, 0, 0]


def test_they_are_the_threads_that_torch_counts() -> None:
    """torch's own setting goes through the same library."""
    maximum = found().openmp.omp_get_max_threads
    threads = torch.get_num_threads()
    try:
        for count in (1, 3):
            torch.set_num_threads(count)
            assert maximum() == count
    finally:
        torch.set_num_threads(threads)


def test_none_where_torch_has_no_openmp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PARALLEL", "GOMP_nothing_of_the_kind")
    assert torch_threads.__wrapped__() is None


def test_the_functions_can_be_named_without_openmp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "torch_threads", lambda: None)
    assert [function.symbol for function in thread_functions()] == [
        "clearhead_omp_get_thread_num",
        "clearhead_omp_get_num_threads",
    ]


def test_importing_it_does_not_import_numba() -> None:
    code = "import sys; import clearhead.kernels.threads; sys.exit('numba' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
