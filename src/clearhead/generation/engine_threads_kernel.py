"""How threads share the work of a step: they wait for work that is done, not for each other.

A step is a row of phases. A phase has units of work, cut into one range for each thread; a thread
takes the units of its own range, then helps with the others'. The phase is over when as many units
are done as there are, whoever did them. So a thread that the machine has taken the core from holds
up nobody: the others do its work, and when it comes back it runs through the phases that are over.
A barrier would let all wait for it, in every phase.

Counts lie in ``tickets``, a line of the processor's cache for each, all 0 at the beginning.
"""
# numba's decorators have no types, and what its vectors are is known to LLVM alone.
# mypy: disable-error-code="untyped-decorator, no-any-return"

from __future__ import annotations

import ctypes
from typing import Any

from llvmlite import binding
from numba import njit, types

from clearhead.attention.addresses_kernel import add_one, counted, pause
from clearhead.attention.compiled_kernel import INLINED
from clearhead.attention.torch_threads import thread_functions
from clearhead.generation.engine_parts_kernel import part
from clearhead.generation.engine_structures import LINE

# About 40 µs, longer than any unit; then the core may go to whoever needs it.
PATIENCE = 2000

thread_number, thread_count = thread_functions()


def _yielding() -> Any:
    """``sched_yield()``, under a name of ours."""
    name = "sched_yield"
    address = ctypes.cast(getattr(ctypes.CDLL(None), name), ctypes.c_void_p).value
    binding.add_symbol(f"clearhead_{name}", address)
    return types.ExternalFunction(f"clearhead_{name}", types.int32())


give_way = _yielding()


@njit(**INLINED)
def done_at(tickets: int, phase: int, threads: int) -> int:
    """Where the finished units of a phase are counted; before it, where each range stands."""
    return tickets + LINE * (phase * (threads + 1) + threads)


@part
def next_unit(tickets: int, phase: int, units: int, thread: int, threads: int) -> int:
    """A unit that nobody has taken; −1 when there is none."""
    for ahead in range(threads):
        owner = (thread + ahead) % threads
        ticket = tickets + LINE * (phase * (threads + 1) + owner)
        unit = units * owner // threads + add_one(ticket)
        if unit < units * (owner + 1) // threads:
            return unit
    return -1


@njit(**INLINED)
def finish(tickets: int, phase: int, threads: int) -> None:
    """Count a unit as done."""
    add_one(done_at(tickets, phase, threads))


@part
def wait(tickets: int, phase: int, units: int, threads: int) -> int:
    """Wait until a phase is over; returns the number of the next."""
    done, patience = done_at(tickets, phase, threads), PATIENCE
    while counted(done) < units:
        if patience > 0:
            pause()
            patience -= 1
        else:
            give_way()
    return phase + 1
