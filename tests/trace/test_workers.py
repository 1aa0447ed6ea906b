"""Long views on several threads: the same numbers, and torch's own threads as they were."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import torch

from clearhead.trace import exact, head_view, pooled_map
from clearhead.trace.seen import Seen
from clearhead.trace.workers import run_in_threads
from tests.shared.synthetic import Options, synthetic


@pytest.fixture(autouse=True)
def three_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def threads_of_a_new_thread() -> int:
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    return found[0]


def test_work_is_shared_and_torch_stays_as_it_was() -> None:
    seen: list[tuple[int, int]] = []
    names: set[str] = set()

    def work(item: int) -> None:
        seen.append((item, torch.get_num_threads()))
        names.add(threading.current_thread().name)

    run_in_threads(work, range(20), torch.device("cpu"))
    assert sorted(seen) == [(item, 1) for item in range(20)]
    assert threading.current_thread().name not in names
    assert torch.get_num_threads() == 3 and threads_of_a_new_thread() == 3


def test_small_work_is_done_here_on_one_thread() -> None:
    seen: list[tuple[str, int]] = []

    def work(item: int) -> None:
        seen.append((threading.current_thread().name, torch.get_num_threads()))
        if item == 2:
            raise ValueError("item 2")

    with pytest.raises(ValueError, match="item 2"):
        run_in_threads(work, range(5), torch.device("cpu"), small=True)
    assert seen == [(threading.current_thread().name, 1)] * 3
    assert torch.get_num_threads() == 3 and threads_of_a_new_thread() == 3


def test_with_one_thread_everything_stays_here() -> None:
    torch.set_num_threads(1)
    here: list[str] = []
    run_in_threads(
        lambda _: here.append(threading.current_thread().name), range(3), torch.device("cpu")
    )
    assert here == [threading.current_thread().name] * 3


def test_an_error_ends_the_work() -> None:
    done: list[int] = []

    def work(item: int) -> None:
        if item == 1:
            raise ValueError("item 1")
        done.append(item)

    with pytest.raises(ValueError, match="item 1"):
        run_in_threads(work, range(1000), torch.device("cpu"))
    assert torch.get_num_threads() == 3 and threads_of_a_new_thread() == 3


@pytest.mark.parametrize("small", [0, 1 << 16])
def test_the_numbers_are_the_same(monkeypatch: pytest.MonkeyPatch, small: int) -> None:
    monkeypatch.setattr(head_view, "SMALL", small)
    for module in (exact, head_view, pooled_map):
        monkeypatch.setattr(module, "BLOCK_ROWS", 16)
        monkeypatch.setattr(module, "BLOCK_COLUMNS", 32)
    made = synthetic(Options(queries=151, keys=151, kv_heads=2, causal=True))
    layer = Seen([made.record])["L0"]
    torch.testing.assert_close(layer.weights().double(), made.weights[0], atol=2e-6, rtol=2e-6)
    torch.testing.assert_close(layer.output().double(), made.output[0], atol=2e-6, rtol=2e-6)
    cells = layer.map(151).cells.double()
    torch.testing.assert_close(cells, made.weights[0], atol=2e-6, rtol=2e-6)
