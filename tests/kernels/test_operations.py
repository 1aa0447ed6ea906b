"""Operations as LLVM's code, and what the processor is taken for."""

from __future__ import annotations

import platform
from typing import Any

import numba
import pytest
from llvmlite import ir
from numba.core import config

from clearhead.kernels import operations


def test_a_function_that_writes_code_becomes_an_operation() -> None:
    @operations.operation(operations.number, operations.number, operations.number)
    def difference(builder: Any, left: Any, right: Any) -> Any:
        """Left − right."""
        return builder.fsub(left, right)

    @numba.njit
    def called(left: float, right: float) -> float:
        return difference(numba.float32(left), numba.float32(right))  # type: ignore[no-any-return]

    assert called(7.0, 2.5) == 4.5


def test_one_of_llvms_own_functions() -> None:
    @operations.operation(operations.number, operations.number)
    def root(builder: Any, value: Any) -> Any:
        return operations.intrinsic_call(builder, "llvm.sqrt.f32", ir.FloatType(), value)

    @numba.njit
    def called(value: float) -> float:
        return root(numba.float32(value))  # type: ignore[no-any-return]

    assert called(6.25) == 2.5


@pytest.mark.parametrize(
    ("features", "fuses", "wide"),
    [("+fma,+avx2,+avx512f", True, True), ("+fma,+avx2,-avx512f", True, False), ("", False, False)],
)
def test_features_can_be_given_by_the_environment(
    features: str, fuses: bool, wide: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "CPU_FEATURES", features)
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    assert operations.fuses() == fuses
    assert operations.has_wide_registers() == wide


def test_arm_fuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "CPU_FEATURES", "")
    monkeypatch.setattr(platform, "machine", lambda: "arm64")
    assert operations.is_arm()
    assert operations.fuses()
    assert not operations.has_wide_registers()
