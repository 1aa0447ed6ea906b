"""In a process of its own: what earlier tests freed would have taught glibc already."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

SCRIPT = """
import resource, sys
import torch
from clearhead.models.build import build
from clearhead.models.config import ModelConfig

if sys.argv[1] == "model":
    with torch.device("meta"):  # as load does
        build(ModelConfig(kind="decoder", vocab=5, context=8, model=4, layers=1, heads=1,
                          feed_forward=4))

def layer():
    first, second = torch.ones(5_000_000), torch.ones(5_000_000)
    return first.add_(second)[0].item()

layer()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    layer()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def pages(what: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, what], capture_output=True, text=True, check=True
    )
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other systems keep what they like")
def test_a_model_finds_the_memory_of_its_last_layer() -> None:
    assert pages("model") < 20_000
    assert pages("nothing") > 60_000  # 20 MB twice, ten times: 97,000 pages of 4 KB
