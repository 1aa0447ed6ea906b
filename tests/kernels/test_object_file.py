"""Objects as LLVM writes them, linked into memory."""

from __future__ import annotations

import ctypes
import platform
import sys

import pytest

from clearhead.kernels.object_file import UnlinkableError, image_of, link

binding = pytest.importorskip("llvmlite.binding")
pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="objects of other machines"
)

TABLE = """
@table = internal constant [4 x i64] [i64 3, i64 5, i64 7, i64 11]
declare i64 @outside(i64)
define i64 @looked_up(i64 %i) {
  %place = getelementptr [4 x i64], [4 x i64]* @table, i64 0, i64 %i
  %found = load i64, i64* %place
  %changed = call i64 @outside(i64 %found)
  ret i64 %changed
}
"""
CALLER = """
declare i64 @looked_up(i64)
define i64 @twice(i64 %i) {
  %found = call i64 @looked_up(i64 %i)
  %sum = add i64 %found, %found
  ret i64 %sum
}
"""
COUNTER = """
@count = global i64 0
define i64 @counted() {
  %old = load i64, i64* @count
  %new = add i64 %old, 1
  store i64 %new, i64* @count
  ret i64 %new
}
"""


def object_of(code: str, *, model: str = "large") -> bytes:
    """What LLVM makes of this code, as numba lets it do."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine(
        codemodel=model, reloc="static"
    )
    made: bytes = machine.emit_object(binding.parse_assembly(code))
    return made


Number = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
plus_100 = Number(lambda number: number + 100)


def outside(symbol: str) -> int | None:
    address = ctypes.cast(plus_100, ctypes.c_void_p).value
    return address if symbol == "outside" else None


def test_functions_find_constants_each_other_and_what_is_outside() -> None:
    images = [
        ("looked_up", image_of(object_of(TABLE), "looked_up")),
        ("twice", image_of(object_of(CALLER), "twice")),
    ]
    addresses = link(images, outside)
    assert [Number(addresses["looked_up"])(i) for i in range(4)] == [103, 105, 107, 111]
    assert Number(addresses["twice"])(2) == 214


def test_a_symbol_that_nobody_knows() -> None:
    images = [("twice", image_of(object_of(CALLER), "twice"))]
    with pytest.raises(UnlinkableError, match="nobody knows looked_up"):
        link(images, outside)


@pytest.mark.parametrize(
    ("code", "function", "model", "said"),
    [
        (COUNTER, "counted", "large", "it has variables"),
        (CALLER, "twice", "small", "an address of kind"),
        (CALLER, "thrice", "large", "no function thrice"),
    ],
)
def test_objects_that_need_more_are_refused(
    code: str, function: str, model: str, said: str
) -> None:
    with pytest.raises(UnlinkableError, match=said):
        image_of(object_of(code, model=model), function)


def test_an_object_that_ends_early_is_refused() -> None:
    whole = object_of(TABLE)
    image_of(whole, "looked_up")
    for end in range(0, len(whole), 7):  # its table of sections is the last
        with pytest.raises(UnlinkableError):
            image_of(whole[:end], "looked_up")


def test_an_object_of_another_machine_is_refused() -> None:
    foreign = bytearray(object_of(TABLE))
    foreign[18] = 183  # ARM
    with pytest.raises(UnlinkableError, match="no object for x86-64"):
        image_of(bytes(foreign), "looked_up")
