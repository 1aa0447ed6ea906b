"""Random numbers: each generator is seeded with the random seed and with its purpose.

No random state is carried from step to step. So a run that resumes after a crash draws the numbers
that it would have drawn, and no generator state has to be saved.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import torch


def seed_for(*purpose: int | str) -> int:
    """A seed for one purpose: well mixed, and the same on every machine."""
    text = "/".join(str(part) for part in purpose)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big")


def generator_for(*purpose: int | str) -> torch.Generator:
    """A generator of random numbers for one purpose."""
    return torch.Generator().manual_seed(seed_for(*purpose))


@contextmanager
def seeded_for(*purpose: int | str, device: torch.device | None = None) -> Iterator[None]:
    """Seed torch's global generator (dropout, initial weights) for one purpose.

    Afterwards it continues as if nothing had been drawn.
    """
    devices = [device] if device is not None and device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed_for(*purpose))
        yield
