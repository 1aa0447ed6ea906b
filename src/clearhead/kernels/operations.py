"""Operations that numba does not have, each as a line of LLVM's code.

Vectors have 16 lanes. LLVM brings them to what the machine has: one AVX-512 register, two of AVX2,
four of NEON. They exist only inside compiled functions.
"""
# numba's decorators have no types, and what its vectors are is known to LLVM alone.
# mypy: disable-error-code="untyped-decorator, no-any-return, misc"

from __future__ import annotations

import inspect
import platform
from collections.abc import Callable
from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils, config
from numba.extending import intrinsic, models, register_model

LANES = 16
FLOAT, HALF, BYTE, SHORT, INT = (
    ir.FloatType(),
    ir.HalfType(),
    ir.IntType(8),
    ir.IntType(16),
    ir.IntType(32),
)
FLOATS, INTS = ir.VectorType(FLOAT, LANES), ir.VectorType(INT, LANES)
HALVES, SHORTS = ir.VectorType(HALF, LANES), ir.VectorType(SHORT, 2 * LANES)
BYTES = ir.VectorType(BYTE, LANES)


class Vector(types.Type):
    """numba's type of a vector."""

    def __init__(self, name: str, vector: ir.VectorType) -> None:
        super().__init__(name=name)
        self.vector = vector


@register_model(Vector)
class VectorModel(models.PrimitiveModel):
    """A vector is what LLVM says it is."""

    def __init__(self, manager: Any, kind: Vector) -> None:
        super().__init__(manager, kind, kind.vector)


floats, ints = Vector("clearhead_floats", FLOATS), Vector("clearhead_ints", INTS)
address, number, whole = types.int64, types.float32, types.int32


def features() -> frozenset[str]:
    """The features of the processor that numba compiles for, by LLVM's names.

    This machine's, unless the environment says otherwise (``NUMBA_CPU_FEATURES``).
    """
    if config.CPU_FEATURES is not None:
        given = config.CPU_FEATURES.split(",")
        return frozenset(name[1:] for name in given if name.startswith("+"))
    return frozenset(name for name, there in binding.get_host_cpu_features().items() if there)


def is_arm() -> bool:
    """True on a 64-bit ARM processor; all of them have what the kernels need."""
    return platform.machine().lower() in ("arm64", "aarch64")


def fuses() -> bool:
    """True if the processor has a fused multiply-add for vectors."""
    return is_arm() or {"fma", "avx2"} <= features()


def has_wide_registers() -> bool:
    """True if one register holds a whole vector of 16 numbers (AVX-512)."""
    return "avx512f" in features()


def operation(result: Any, *arguments: Any) -> Callable[[Callable[..., Any]], Any]:
    """Make a function that writes LLVM's code into an operation for numba."""

    def made(write: Callable[..., Any]) -> Any:
        def typed(_context: Any, *_given: Any) -> Any:
            def generate(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
                written = write(builder, *values)
                return context.get_dummy_value() if result is types.void else written

            return result(*arguments), generate

        names = ["context", *(f"value_{i}" for i in range(len(arguments)))]
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD  # numba wants to count them
        given = inspect.Signature([inspect.Parameter(name, kind) for name in names])
        typed.__name__, typed.__doc__ = write.__name__, write.__doc__
        typed.__signature__ = given  # type: ignore[attr-defined]
        return intrinsic(typed)

    return made


def intrinsic_call(builder: Any, name: str, result: Any, *values: Any) -> Any:
    """Call one of LLVM's own functions by name."""
    kind = ir.FunctionType(result, [value.type for value in values])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), values)


def function_call(builder: Any, where: Any, *values: Any) -> None:
    """Call the C function of 64-bit whole numbers at an address; it returns nothing."""
    kind = ir.FunctionType(ir.VoidType(), [ir.IntType(64)] * len(values))
    builder.call(pointer(builder, where, kind), values)


def in_all_lanes(kind: ir.VectorType, value: float) -> ir.Constant:
    """A constant in all lanes."""
    return ir.Constant(kind, [value] * kind.count)


def broadcast_to(builder: Any, value: Any, kind: ir.VectorType) -> Any:
    """A value in all lanes."""
    nothing = ir.Constant(kind, ir.Undefined)
    one = builder.insert_element(nothing, value, ir.Constant(INT, 0))
    return builder.shuffle_vector(one, nothing, in_all_lanes(INTS, 0))


def picked(builder: Any, vector: Any, lanes: list[int]) -> Any:
    """Some lanes of a vector, in this order."""
    order = ir.Constant(ir.VectorType(INT, len(lanes)), lanes)
    return builder.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), order)


def pointer(builder: Any, where: Any, kind: Any) -> Any:
    """A whole number as the address of something of this kind."""
    return builder.inttoptr(where, kind.as_pointer())
