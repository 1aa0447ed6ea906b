"""Numbers at addresses, read and written by compiled functions."""

from __future__ import annotations

import ctypes
import re
from typing import Any

import numba
import numpy as np
from numba import types

from clearhead.kernels import memory, vectors
from clearhead.kernels.threads import torch_threads
from tests.shared.compiled import LANES


def test_vectors_come_and_go() -> None:
    @numba.njit
    def copy(floats: int, halves: int, ints: int) -> None:
        memory.store_floats(floats + 64, memory.load_floats(floats))
        memory.store_halves(halves + 32, memory.load_halves(halves))
        memory.store_ints(ints + 64, memory.load_ints(ints))

    numbers = np.random.default_rng(3).normal(size=LANES)
    floats, halves, ints = (
        np.concatenate([numbers * scale, np.zeros(LANES)]).astype(kind)
        for scale, kind in ((1, np.float32), (1, np.float16), (1e6, np.int32))
    )
    copy(floats.ctypes.data, halves.ctypes.data, ints.ctypes.data)
    for array in (floats, halves, ints):
        assert array[LANES:].tolist() == array[:LANES].tolist()
        assert array[:LANES].any()


def test_single_numbers() -> None:
    @numba.njit
    def move(place: int) -> None:
        memory.put_float(place + 8, memory.float_at(place))
        memory.put_half(place + 12, memory.float_at(place))
        memory.put_float(place + 16, memory.half_at(place + 12))
        memory.put_byte(place + 20, memory.integer_at(place + 32))
        memory.put_byte(place + 21, memory.byte_at(place + 20) + 1)
        memory.put_int(place + 24, np.int32(-7))

    space = np.zeros(40, np.uint8)
    space[:4] = np.array([1.5], np.float32).view(np.uint8)
    space[32:40] = np.array([0x1234], np.int64).view(np.uint8)
    move(space.ctypes.data)
    assert space[8:12].view(np.float32)[0] == 1.5
    assert space[12:14].view(np.float16)[0] == 1.5
    assert space[16:20].view(np.float32)[0] == 1.5
    assert space[20:22].tolist() == [0x34, 0x35]
    assert space[24:28].view(np.int32)[0] == -7


def test_one_number_in_all_lanes() -> None:
    @numba.njit
    def broadcast(place: int, result: int) -> None:
        memory.store_floats(result, memory.broadcast_float_at(place))
        memory.store_ints(result + 64, memory.broadcast_int_at(place + 4))

    place = np.array([2.5, 0], np.float32)
    place.view(np.int32)[1] = 19
    result = np.zeros(2 * LANES, np.float32)
    broadcast(place.ctypes.data, result.ctypes.data)
    assert result[:LANES].tolist() == [2.5] * LANES
    assert result.view(np.int32)[LANES:].tolist() == [19] * LANES


@numba.cfunc(types.void(types.int64))
def count_up(place: Any) -> None:
    for _ in range(1009):
        memory.add_one(place)


def test_threads_count_together() -> None:
    threads = torch_threads()
    assert threads is not None
    place = ctypes.c_int64(5)
    threads.run(count_up.address, ctypes.addressof(place), 3)
    assert place.value == 5 + 3 * 1009

    @numba.njit
    def read(place: int) -> int:
        memory.pause()
        return memory.counted(place)  # type: ignore[no-any-return]

    assert read(ctypes.addressof(place)) == place.value


def test_bytes_and_bfloat16() -> None:
    @numba.njit
    def load(place: int, result: int) -> None:
        memory.store_ints(result, memory.load_bytes(place))
        memory.store_ints(result + 64, memory.load_signed_bytes(place))
        memory.store_floats(result + 128, memory.load_brain_floats(place))

    given = np.random.default_rng(4).integers(0, 256, 32, dtype=np.uint8)
    found = np.zeros((3, LANES), np.int32)
    load(given.ctypes.data, found.ctypes.data)
    assert found[0].tolist() == given[:16].tolist()
    assert found[1].tolist() == given[:16].view(np.int8).tolist()
    assert (
        found[2].tolist() == (given.view(np.uint16).astype(np.uint32) << 16).view(np.int32).tolist()
    )


def test_pieces_of_two_and_four_bytes() -> None:
    @numba.njit
    def move(place: int) -> None:
        memory.put_short(place + 8, memory.short_at(place) + 1)
        memory.put_word(place + 10, memory.word_at(place) >> 8)

    space = np.array([0xFE, 0xFF, 3, 0x84, *[0] * 12], np.uint8)
    move(space.ctypes.data)
    assert space[8:14].tolist() == [0xFF, 0xFF, 0xFF, 3, 0x84, 0]


def test_functions_at_an_address() -> None:
    three = types.void(*[types.int64] * 3)
    six = types.void(*[types.int64] * 6)

    @numba.cfunc(three)
    def sum_of_two(place: int, first: int, second: int) -> None:
        memory.put_word(place, first + second)

    @numba.cfunc(six)
    def sum_of_five(place: int, a: int, b: int, c: int, d: int, e: int) -> None:
        memory.put_word(place, a + 2 * b + 3 * c + 4 * d + 5 * e)

    @numba.njit
    def call(first: int, second: int, place: int) -> None:
        memory.call_with_three(first, place, 30, 7)
        memory.call_with_six(second, place + 4, 1, 2, 3, 4, 5)

    space = np.zeros(2, np.int32)
    call(sum_of_two.address, sum_of_five.address, space.ctypes.data)
    assert space.tolist() == [37, 55]


def loads_of(function: Any) -> int:
    """How often compiled code loads 16 whole numbers."""
    compiled = numba.njit("void(int64, int64)")(function)
    (code,) = compiled.inspect_llvm().values()
    body = code[code.index("define") :].split("\n}")[0]
    return len(re.findall(r"= load <16 x i32>", body))


def test_loads_stay_where_they_are() -> None:
    def free(source: int, target: int) -> None:
        first = memory.load_ints(source)
        memory.store_ints(target, vectors.add_ints(first, memory.load_ints(source)))

    def ordered(source: int, target: int) -> None:
        first = memory.load_ints(source)
        memory.keep_order()
        memory.store_ints(target, vectors.add_ints(first, memory.load_ints(source)))

    assert (loads_of(free), loads_of(ordered)) == (1, 2)


def test_an_early_fetch_asks_and_changes_nothing() -> None:
    def early(source: int, target: int) -> None:
        memory.fetch_once(0)  # an address that nobody may read
        memory.fetch_once(source + 8192)
        memory.store_ints(target, memory.load_ints(source))

    compiled = numba.njit("void(int64, int64)")(early)
    (code,) = compiled.inspect_llvm().values()
    assert len(re.findall(r"call void @llvm\.prefetch", code)) >= 2
    numbers, copy = np.arange(16, dtype=np.int32), np.zeros(16, dtype=np.int32)
    compiled(numbers.ctypes.data, copy.ctypes.data)
    assert copy.tolist() == numbers.tolist()
