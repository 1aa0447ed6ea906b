"""Every file against llama.cpp and ik_llama.cpp by processor time, on one thread each.

Processor time hardly depends on what else runs, so this can be measured on a busy machine. It does
not say how well threads share the work, nor what the memory gives to both cores at once.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable
from pathlib import Path

import torch
from measure import table

from generating.contestants import TOKENS, Clearhead, some_ids
from generating.files import LABELS
from generating.peers import IkLlama, Llama
from generating.seven import CONTESTANTS, RATIOS, cells, end, measured

PROMPT = 192  # tokens


def of_process(number: int) -> float:
    """Seconds of the processor that a process has taken so far (Linux)."""
    fields = Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def taken(clock: Callable[[], float], work: Callable[[], float], rounds: int) -> float:
    """Seconds of the clock for a round, the mean: it ticks in hundredths. The first warms up."""
    work()
    start = clock()
    for _ in range(rounds):
        work()
    return (clock() - start) / rounds


def speeds_of(path: Path, rounds: int) -> dict[str, dict[str, float]]:
    """Tokens for each second of a processor, of everybody."""
    torch.set_num_threads(1)
    peers: dict[str, Llama | IkLlama] = {
        "llama.cpp": Llama(path, context=640, threads=1),
        "ik_llama.cpp": IkLlama(path, context=640, threads=1),
    }
    clocks: dict[str, Callable[[], float]] = {"clearhead": time.process_time}
    for name, peer in peers.items():
        clocks[name] = functools.partial(of_process, peer.process.pid)
    everybody: dict[str, Clearhead | Llama | IkLlama] = {
        "clearhead": Clearhead(path, keep_float32=False)
    }
    everybody |= peers
    few, many = some_ids(16), some_ids(PROMPT)
    steps = {
        name: taken(clocks[name], each.decode([few]), rounds) for name, each in everybody.items()
    }
    prompts = {
        name: taken(clocks[name], each.prefill(many), rounds) for name, each in everybody.items()
    }
    end(*peers.values())
    return {
        "decode, 16 tokens cached": {name: TOKENS / each for name, each in steps.items()},
        f"prompt of {PROMPT} tokens": {name: PROMPT / each for name, each in prompts.items()},
    }


def processor_times(names: list[str], rounds: int) -> str:
    found = measured(names, "processor", lambda path: speeds_of(path, rounds))
    rows = []
    for name, works in found.items():
        rows += [[f"{LABELS[name]}, {label}", *cells(speed)] for label, speed in works.items()]
    return table(["tokens for each second of one processor", *CONTESTANTS, *RATIOS], rows)
