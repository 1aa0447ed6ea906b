"""The engine compiled for AVX2 alone, as on processors without AVX-512, beside llama.cpp.

numba is told what the processor can do, in a process of its own: ``NUMBA_CPU_FEATURES``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from generation_contestants import Clearhead, Llama, some_ids, turns
from measure import table

AVX2 = {
    "NUMBA_CPU_NAME": "haswell",
    "NUMBA_CPU_FEATURES": "+64bit,+cx16,+popcnt,+sse4.2,+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt",
}
WORK = {  # kind, tokens before or in the prompt, tokens that a round yields
    "decode, 16 tokens in the cache": ("decode", 16, 1),
    "prompt of 512 tokens": ("prefill", 512, 512),
}


class Elsewhere:
    """Our side in a process of its own, which sleeps while the others have their turn."""

    def __init__(self, path: Path, environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | environment,
        )

    def round(self, kind: str, size: int) -> Callable[[], float]:
        def work() -> float:
            assert self.process.stdin is not None and self.process.stdout is not None
            self.process.stdin.write(f"{kind} {size}\n")
            self.process.stdin.flush()
            return float(self.process.stdout.readline())

        return work

    def end(self) -> None:
        self.process.communicate()


def avx2(path: Path, rounds: int) -> str:
    """Tokens each second with AVX2 alone."""
    whole, narrow = Elsewhere(path, {}), Elsewhere(path, AVX2)
    llama = Llama(path, context=640)
    rows = []
    for label, (kind, size, tokens) in WORK.items():
        ids = some_ids(size)
        took = turns(
            {
                "whole": whole.round(kind, size),
                "narrow": narrow.round(kind, size),
                "llama": llama.decode([ids]) if kind == "decode" else llama.prefill(ids),
            },
            rounds,
        )
        speeds = [f"{tokens / each:.4g}" for each in took.values()]
        rows.append([label, *speeds, f"{took['llama'] / took['narrow']:.2f}×"])
    for each in (whole, narrow, llama):
        each.end()
    head = ["tokens/s", "clearhead", "with AVX2 alone", "llama.cpp", "faster with AVX2 alone"]
    return table(head, rows)


def answer_rounds(path: Path) -> None:
    """The process: a kind of work and a size in, seconds out."""
    mine = Clearhead(path)
    works: dict[str, Callable[[], float]] = {}
    for line in sys.stdin:
        kind, size = line.split()
        if line not in works:
            ids = some_ids(int(size))
            works[line] = mine.decode([ids]) if kind == "decode" else mine.prefill(ids)
        print(works[line](), flush=True)


if __name__ == "__main__":
    answer_rounds(Path(sys.argv[1]))
