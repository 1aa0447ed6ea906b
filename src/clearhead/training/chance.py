"""Where random numbers come from: each follows from the seed and from what it is for.

Nothing random is carried from step to step, so a run that continues after a crash draws what it
would have drawn, and there is no generator whose state could be lost.
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
def drawn_for(*purpose: int | str, device: torch.device | None = None) -> Iterator[None]:
    """Inside, torch's own random numbers (dropout, fresh weights) serve one purpose.

    Outside, they go on as if nothing had been drawn.
    """
    devices = [device] if device is not None and device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed_for(*purpose))
        yield
