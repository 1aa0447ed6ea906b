"""Several processes, on one machine or many (``torchrun``): each counts its share of the sentences.

The sum of their counts is exactly that of one process.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import distributed

from clearhead.explain.roles.counts.tally import Tally
from clearhead.explain.roles.counts.tally_file import read_tally, tally_bytes


@contextmanager
def process_share() -> Iterator[tuple[int, int]]:
    """Yield (rank, number of processes) under torchrun; (0, 1) without it."""
    many = int(os.environ.get("WORLD_SIZE", "1"))
    if many == 1 or not distributed.is_available():
        yield 0, 1
        return
    mine = not distributed.is_initialized()
    if mine:
        distributed.init_process_group("gloo")
    try:
        yield distributed.get_rank(), distributed.get_world_size()
    finally:
        if mine:
            distributed.destroy_process_group()


def added_up(tally: Tally) -> Tally:
    """Return the sum of the counts of all processes, the same in each of them."""
    if not distributed.is_available() or not distributed.is_initialized():
        return tally
    mine = torch.frombuffer(bytearray(tally_bytes(tally)), dtype=torch.uint8)
    sizes = [torch.zeros(1, dtype=torch.int64) for _ in range(distributed.get_world_size())]
    distributed.all_gather(sizes, torch.tensor([len(mine)]))
    longest = max(int(size) for size in sizes)
    padded = torch.zeros(longest, dtype=torch.uint8)
    padded[: len(mine)] = mine
    parts = [torch.zeros(longest, dtype=torch.uint8) for _ in sizes]
    distributed.all_gather(parts, padded)
    together = Tally()
    for part, size in zip(parts, sizes, strict=True):
        other, _ = read_tally(part[: int(size)].numpy().tobytes())
        together.add(other)
    return together
