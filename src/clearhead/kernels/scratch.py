"""Scratch memory of kernels, reused from one call to the next.

Asking the system for a few megabytes anew takes longer than filling them: each page is cleared and
mapped on its first touch.
"""

from __future__ import annotations

import math
import threading

import torch
from jaxtyping import Float
from torch import Tensor


class Scratch(threading.local):
    """float32 numbers that any kernel may overwrite; each thread has its own."""

    memory = torch.empty(0)
    _latest = memory

    def floats(self, count: int) -> Float[Tensor, " at_least_count"]:
        """At least so many numbers, uninitialised."""
        if self.memory.numel() < count:
            self.memory = torch.empty(count)
        return self.memory

    def shaped(self, shape: tuple[int, ...]) -> Tensor:
        """Some of it in a shape; the latest is kept, as layers ask for one shape after another."""
        if self._latest.shape != shape:
            count = math.prod(shape)
            self._latest = self.floats(count)[:count].view(shape)
        return self._latest


SCRATCH = Scratch()
