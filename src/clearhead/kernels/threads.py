"""Run compiled functions on the threads that torch already has.

numba would run a parallel loop on threads of its own, and those fight for the cores with torch's,
which keep spinning for a while after their work: on 2 cores a 576×576 matrix-vector product takes
about 36 µs, and 217 µs when an empty numba ``prange`` follows it. So a kernel is compiled to a C
function of one pointer, and the OpenMP library that torch is linked to calls it on its threads::

    threads = torch_threads()  # None where torch's threads are not OpenMP's
    threads.run(function.address, ctypes.byref(arguments), torch.get_num_threads())

Inside the function, the two of :func:`thread_functions` tell each thread which share is its own.
"""

from __future__ import annotations

import ctypes
import functools
from dataclasses import dataclass
from typing import Any

import torch

_PARALLEL = "GOMP_parallel"  # gcc's name for it, which other OpenMP libraries offer too
_THREAD_NUMBER = "omp_get_thread_num"
_THREAD_COUNT = "omp_get_num_threads"


@dataclass(frozen=True)
class TorchThreads:
    """The OpenMP library that torch computes with."""

    openmp: ctypes.CDLL

    def run(self, function: int, argument: Any, threads: int) -> None:
        """Call the C function at an address, ``void function(void *argument)``, on every thread.

        Returns when all have finished. OpenMP may give fewer threads than wanted, never more.
        """
        self.openmp.GOMP_parallel(function, argument, threads, 0)


@functools.cache
def torch_threads() -> TorchThreads | None:
    """torch's threads; None where torch is built without OpenMP."""
    library = ctypes.CDLL(torch._C.__file__)  # a name is looked up in all that torch is linked to
    if not all(hasattr(library, name) for name in (_PARALLEL, _THREAD_NUMBER, _THREAD_COUNT)):
        return None
    library.GOMP_parallel.argtypes = (
        ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint,
    )  # fmt: skip
    library.GOMP_parallel.restype = None
    return TorchThreads(library)


def thread_functions() -> tuple[Any, Any]:
    """``thread_number()`` and ``thread_count()``, for what numba compiles and torch's threads run.

    A cached kernel finds them by name when it is loaded. The names are ours, so that no other
    OpenMP library in the process answers. Without OpenMP they can be named, but not linked.
    """
    return _for_numba(_THREAD_NUMBER), _for_numba(_THREAD_COUNT)


def _for_numba(name: str) -> Any:
    from llvmlite import binding
    from numba import types

    ours = f"clearhead_{name}"
    address = names_for_kernels().get(ours)
    if address is not None:
        binding.add_symbol(ours, address)
    return types.ExternalFunction(ours, types.int32())


@functools.cache
def names_for_kernels() -> dict[str, int]:
    """The addresses of what kernels call by a name of ours; without OpenMP some are missing."""
    found = {"clearhead_sched_yield": getattr(ctypes.CDLL(None), "sched_yield", None)}
    threads = torch_threads()
    if threads is not None:
        for name in (_THREAD_NUMBER, _THREAD_COUNT):
            found[f"clearhead_{name}"] = getattr(threads.openmp, name)
    addresses = {
        name: ctypes.cast(function, ctypes.c_void_p).value
        for name, function in found.items()
        if function is not None
    }
    return {name: address for name, address in addresses.items() if address is not None}
