"""The engine's compiled functions: out of kept machine code, or made by numba from ``kernels/``.

Modules in ``kernels/`` import numba, which costs half a second and 100 MB. Once their machine code
is kept (:mod:`clearhead.kernels.machine_code`), nothing here imports them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from clearhead.checkpoints.gguf import unpack_rows
from clearhead.kernels.machine_code import MachineCode, is_kept, machine_code, sources_of

SOURCES = (*sources_of(__file__), *unpack_rows.SOURCES)
STEP = "engine.step"
Report = Callable[[int, int], None]  # done, total


def step_is_kept() -> bool:
    """True if the step can be loaded without numba."""
    return is_kept(STEP, SOURCES)


_step: list[MachineCode] = []


def step_code(report: Report = lambda _done, _total: None) -> MachineCode:
    """The function ``run_step`` and what it calls; what a workspace has to know about it.

    It is compiled or loaded once; ``report(done, total)`` is the progress.
    """
    if not _step:
        _step.append(machine_code(STEP, SOURCES, lambda: _build_step(report)))
    return _step[0]


def _build_step(report: Report) -> MachineCode:
    from clearhead.engine.kernels import numbers, parts, step
    from clearhead.kernels.compiling import compiled

    address = step.step_function(report)
    called = {
        one.symbol: int(compiled(one.function, one.signature).address) for one in parts._parts
    }
    facts = {
        "activations": list(numbers.ACTIVATIONS),
        "group_bytes": numbers.QUANTISED_GROUP_BYTES,
        "attention_phases": step.ATTENTION_PHASES,
        "feed_forward_phases": step.FEED_FORWARD_PHASES,
        "other_phases": step.OTHER_PHASES,
    }
    return MachineCode({**called, "run_step": address}, facts)


def _function(name: str, build: Callable[[], int]) -> int:
    found = machine_code(f"engine.{name}", SOURCES, lambda: MachineCode({name: build()}))
    return found.addresses[name]


@functools.cache
def multiply_function(kind: str) -> int:
    """The product of a kind: the address of f(tile, groups, vector, stride, tokens, result)."""

    def build() -> int:
        from clearhead.engine.kernels import matrix

        return matrix.multiply_function(kind)

    return _function(f"multiply_{kind}", build)


@functools.cache
def pack_function() -> int:
    """What quantises weights into tiles: the address of f(structure ``Pack``)."""

    def build() -> int:
        from clearhead.engine.kernels.weight_packing import pack_weights

        return _of_one_address(pack_weights)

    return _function("pack_weights", build)


@functools.cache
def interleave_function() -> int:
    """What puts blocks into tiles: the address of f(structure ``Interleave``)."""

    def build() -> int:
        from clearhead.engine.kernels.interleaving import interleave

        return _of_one_address(interleave)

    return _function("interleave", build)


def _of_one_address(function: Callable[[int], None]) -> int:
    from numba import types

    from clearhead.kernels.compiling import compiled

    return int(compiled(function, types.void(types.int64)).address)
