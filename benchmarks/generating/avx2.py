"""The engine compiled for AVX2 alone, as on processors without AVX-512, beside llama.cpp.

numba is told what the processor can do, in a process of its own: ``NUMBA_CPU_FEATURES``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from measure import table

from generating.contestants import Clearhead, some_ids, turns
from generating.files import LABELS
from generating.peers import IkLlama, Llama
from generating.seven import CONTESTANTS, RATIOS, end, measured

AVX2 = {
    "NUMBA_CPU_NAME": "haswell",
    "NUMBA_CPU_FEATURES": "+64bit,+cx16,+popcnt,+sse4.2,+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt",
}
WORK = {  # kind, tokens before or in the prompt, tokens that a round yields
    "decode, 16 tokens cached": ("decode", 16, 1),
    "prompt of 512 tokens": ("prefill", 512, 512),
}


class Elsewhere:
    """Our side in a process of its own, which sleeps while the others have their turn."""

    def __init__(self, path: Path, environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "generating.avx2", str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | environment,
            cwd=Path(__file__).resolve().parents[1],
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


def speeds_of(path: Path, rounds: int) -> dict[str, dict[str, float]]:
    """Tokens each second: ours with AVX2 alone, the peers with what they have."""
    narrow = Elsewhere(path, AVX2)
    peers = {"llama.cpp": Llama(path, context=640), "ik_llama.cpp": IkLlama(path, context=640)}
    found = {}
    for label, (kind, size, tokens) in WORK.items():
        ids = some_ids(size)
        work = {"clearhead": narrow.round(kind, size)}
        for name, peer in peers.items():
            assert isinstance(peer, Llama | IkLlama)
            work[name] = peer.decode([ids]) if kind == "decode" else peer.prefill(ids)
        found[label] = {name: tokens / each for name, each in turns(work, rounds).items()}
    narrow.end()
    end(*peers.values())
    return found


def avx2(names: list[str], rounds: int) -> str:
    """Tokens each second with AVX2 alone."""
    found = measured(names, "avx2", lambda path: speeds_of(path, rounds))
    rows = []
    for name, works in found.items():
        for label, speed in works.items():
            cells = [f"{speed[each]:.4g}" for each in CONTESTANTS]
            ratios = [f"{speed['clearhead'] / speed[each]:.2f}×" for each in CONTESTANTS[1:]]
            rows.append([f"{LABELS[name]}, {label}", *cells, *ratios])
    return table(["tokens/s", "clearhead, AVX2 alone", *CONTESTANTS[1:], *RATIOS], rows)


def answer_rounds(path: Path) -> None:
    """The process: a kind of work and a size in, seconds out."""
    mine = Clearhead(path, keep_float32=False)
    works: dict[str, Callable[[], float]] = {}
    for line in sys.stdin:
        kind, size = line.split()
        if line not in works:
            ids = some_ids(int(size))
            works[line] = mine.decode([ids]) if kind == "decode" else mine.prefill(ids)
        print(works[line](), flush=True)


if __name__ == "__main__":
    answer_rounds(Path(sys.argv[1]))
