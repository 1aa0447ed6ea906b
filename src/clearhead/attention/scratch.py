"""Memory that a kernel needs only while it runs, kept from one call to the next.

Asking the system for a few megabytes anew takes longer than filling them: each page is cleared and
mapped on its first touch.
"""

from __future__ import annotations

import threading

import torch
from jaxtyping import Float
from torch import Tensor


class Scratch(threading.local):
    """float32 numbers of nobody in particular, each thread's own."""

    memory = torch.empty(0)

    def floats(self, count: int) -> Float[Tensor, " at_least_count"]:
        """At least so many; what they hold is anybody's guess."""
        if self.memory.numel() < count:
            self.memory = torch.empty(count)
        return self.memory


SCRATCH = Scratch()
