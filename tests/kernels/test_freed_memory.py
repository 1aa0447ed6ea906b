"""In a process of its own: what earlier tests freed would have taught glibc already."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

SCRIPT = """
import ctypes, sys
import torch
import clearhead as ch
from clearhead.models.build import build
from clearhead.models.config import ModelConfig

class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "mapped", "usmblks", "fsmblks", "uordblks",
        "fordblks", "keepcost")]

library = ctypes.CDLL(None)
library.mallinfo2.restype = Info

if sys.argv[1] == "model":
    with torch.device("meta"):  # as load does
        build(ModelConfig(kind="decoder", vocab=5, context=8, model=4, layers=1, heads=1,
                          feed_forward=4))
if sys.argv[1] == "watch":
    with ch.watch(torch.nn.MultiheadAttention(4, 1)):
        pass
before = library.mallinfo2().mapped
layer = torch.ones(5_000_000)
print(library.mallinfo2().mapped - before)
"""


def mapped(what: str) -> int:
    """Bytes that the system maps anew for 20 MB, instead of taking them from the heap."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, what], capture_output=True, text=True, check=True
    )
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other systems keep what they like")
def test_our_models_and_watched_ones_take_their_layers_from_the_heap() -> None:
    assert mapped("nothing") >= 20_000_000
    assert mapped("model") == 0
    assert mapped("watch") == 0
