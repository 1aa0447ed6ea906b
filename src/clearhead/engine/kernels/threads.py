"""Work stealing: threads wait for units of work to be done, not for each other.

A step is a sequence of phases. A phase has units of work, divided into one range for each thread.
A thread takes the units of its own range, then steals from the others. The phase is over when all
its units are done, by whichever thread. So a thread that lost its core to another process delays
nobody: the others do its work, and when it continues it skips the phases that are over. With a
barrier, all threads would wait for it in every phase.

``counters`` has a cache line for each counter, all 0 at the start of a step: for each phase, the
next unit of each thread's range, then the number of units that each thread has finished. With one
number for all threads, its line would go from core to core after each unit.
"""
# numba's decorators have no types, and only LLVM knows the type of a vector.
# mypy: disable-error-code="untyped-decorator, no-any-return"

from __future__ import annotations

import ctypes
from typing import Any

from llvmlite import binding
from numba import njit, types

from clearhead.engine.kernels.parts import part
from clearhead.engine.kernels.structures import LINE
from clearhead.kernels.compiling import INLINED
from clearhead.kernels.memory import add_one, counted, pause
from clearhead.kernels.threads import thread_functions

# Spinning takes about 40 µs, longer than any unit; then the thread yields its core.
SPINS = 2000

thread_number, thread_count = thread_functions()


def _sched_yield() -> Any:
    """Declare ``sched_yield()`` for numba, under a name of our own."""
    name = "sched_yield"
    address = ctypes.cast(getattr(ctypes.CDLL(None), name), ctypes.c_void_p).value
    binding.add_symbol(f"clearhead_{name}", address)
    return types.ExternalFunction(f"clearhead_{name}", types.int32())


yield_core = _sched_yield()


@njit(**INLINED)
def counter_at(counters: int, phase: int, number: int, threads: int) -> int:
    """Address of a counter of a phase: the next units of all threads, then what they finished."""
    return counters + LINE * (2 * phase * threads + number)


@part
def next_unit(counters: int, phase: int, units: int, thread: int, threads: int) -> int:
    """Take the next free unit of a phase; −1 if there is none."""
    for ahead in range(threads):
        owner = (thread + ahead) % threads
        counter = counter_at(counters, phase, owner, threads)
        unit = units * owner // threads + add_one(counter)
        if unit < units * (owner + 1) // threads:
            return unit
    return -1


@njit(**INLINED)
def finish(counters: int, phase: int, thread: int, threads: int) -> None:
    """Count a unit that this thread has done."""
    add_one(counter_at(counters, phase, threads + thread, threads))


@njit(**INLINED)
def finished(counters: int, phase: int, threads: int) -> int:
    """The number of finished units of a phase."""
    found = 0
    for thread in range(threads):
        found += counted(counter_at(counters, phase, threads + thread, threads))
    return found


@part
def wait(counters: int, phase: int, units: int, threads: int) -> int:
    """Wait until a phase is over; return the index of the next."""
    spins = SPINS
    while finished(counters, phase, threads) < units:
        if spins > 0:
            pause()
            spins -= 1
        else:
            yield_core()
    return phase + 1
