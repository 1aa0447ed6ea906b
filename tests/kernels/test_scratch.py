"""Scratch memory is reused by the thread that has it."""

from __future__ import annotations

import threading

from clearhead.kernels.scratch import Scratch


def test_memory_is_reused_and_grows() -> None:
    scratch = Scratch()
    first = scratch.floats(7)
    assert first.numel() >= 7
    assert scratch.floats(5).data_ptr() == first.data_ptr()
    assert scratch.floats(1009).numel() >= 1009


def test_a_shape_is_a_part_of_it() -> None:
    scratch = Scratch()
    shaped = scratch.shaped((2, 3, 5))
    assert shaped.shape == (2, 3, 5)
    assert scratch.shaped((2, 3, 5)) is shaped
    assert scratch.shaped((3, 5)).data_ptr() == scratch.memory.data_ptr()


def test_each_thread_has_its_own() -> None:
    scratch, found = Scratch(), []
    thread = threading.Thread(target=lambda: found.append(scratch.floats(7).data_ptr()))
    mine = scratch.floats(7).data_ptr()
    thread.start()
    thread.join()
    assert found != [mine]
