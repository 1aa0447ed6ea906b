"""What reading a large text for training takes: memory, seconds, and the speed of tokenising.

    python benchmarks/training_data.py                 # 1 GB, and 32 MB in turns with the peer
    python benchmarks/training_data.py --megabytes 100 --turns 3
    python benchmarks/training_data.py --publish       # into docs/benchmarks.md

The text is generated: made-up words whose frequencies fall as Zipf's law has it, from a seed. The
run itself is another process, so that its peak of memory is its own: ``ch.train`` until its first
step. The peer is the `tokenizers` package alone, ``encode_batch`` over lines that are in memory
already; ours reads the file, cuts it, tokenises and writes the token file. Both in turns.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from measure import machine, peak_memory, publish, table

WORDS, SYLLABLES = 200_000, ("ka", "ter", "in", "o", "schu", "le", "ant", "mi", "ro", "esh", "tu")
LINE = 14  # words


def write_text(path: Path, megabytes: float, seed: int = 1) -> int:
    """A text of about so many megabytes; returns its size in bytes."""
    draw, generator = random.Random(seed), np.random.default_rng(seed)
    words = ["".join(draw.choices(SYLLABLES, k=draw.randint(1, 5))) for _ in range(WORDS)]
    chances = 1 / np.arange(1, WORDS + 1)
    steps = np.cumsum(chances / chances.sum())
    size = 0
    with path.open("w", encoding="utf-8") as file:
        while size < megabytes * 1e6:
            drawn = np.searchsorted(steps, generator.random(70_000)).tolist()
            chosen = [words[min(n, WORDS - 1)] for n in drawn]
            lines = [" ".join(chosen[at : at + LINE]) for at in range(0, len(chosen), LINE)]
            size += file.write(".\n".join(lines) + ".\n")
    return path.stat().st_size


def begin(path: Path, out: Path) -> None:
    """In a process of its own: a run until it is ready for its first step."""
    from clearhead.training.events import Read, Started
    from clearhead.training.run import train

    moments: dict[str, float] = {}
    began = time.perf_counter()
    facts: dict[str, Any] = {}
    for event in train(path, out=out, steps=1, device="cpu"):
        if isinstance(event, Read):
            moments[event.what] = time.perf_counter() - began
        if isinstance(event, Started):
            facts["tokens"] = event.tokens
            break
    facts |= {
        "seconds": time.perf_counter() - began,
        "until": moments,
        "cpu_seconds": time.process_time(),
        "peak_mb": peak_memory() / 1e6,
    }
    print(json.dumps(facts))


def in_turns(path: Path, turns: int) -> dict[str, dict[str, list[float]]]:
    """Seconds of the wall clock and of the processor, ours and the peer's, in turns."""
    from clearhead.text.subwords.training import train_bpe
    from clearhead.training.data.corpus import Corpus
    from clearhead.training.data.tokens.encoder import Encoder
    from clearhead.training.data.tokens.survey import drained, surveyed
    from clearhead.training.data.tokens.tokenising import Surveyed, tokenised

    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    tokenizer = train_bpe(lines, 8192)
    corpus = Corpus.at([path])
    survey = drained(surveyed(corpus))
    found: dict[str, dict[str, list[float]]] = {}

    def ours() -> None:
        with tempfile.TemporaryDirectory() as folder:
            one = Surveyed(corpus, survey, survey.characters)
            for _ in tokenised([one], Encoder(tokenizer), Path(folder)):
                pass

    def peer() -> None:
        for at in range(0, len(lines), 10_000):
            for one in tokenizer.backend.encode_batch(lines[at : at + 10_000]):
                np.array(one.ids, np.uint16)

    for _ in range(turns):
        for name, run in (("clearhead", ours), ("tokenizers", peer)):
            wall, processor = time.perf_counter(), time.process_time()
            run()
            times = found.setdefault(name, {"wall": [], "processor": []})
            times["wall"].append(time.perf_counter() - wall)
            times["processor"].append(time.process_time() - processor)
    return found


def speeds(folder: Path, megabytes: float, turns: int) -> str:
    """How fast both tokenise, as a table."""
    size = write_text(folder / "small.txt", megabytes) / 1e6
    rows = []
    for name, times in in_turns(folder / "small.txt", turns).items():
        wall, processor = median(times["wall"]), median(times["processor"])
        rows.append([name, f"{size / wall:.2f}", f"{size / processor:.2f}"])
    return table([f"{size:,.0f} MB of text", "MB/s", "MB for each second of a processor"], rows)


def large(folder: Path, megabytes: float) -> str:
    """A run's way to its first step, as a table."""
    size = write_text(folder / "large.txt", megabytes) / 1e6
    command = [sys.executable, __file__, "--begin", f"{folder}/large.txt", f"{folder}/run"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    facts = json.loads(done.stdout)
    rows = [[f"{what}: done after", f"{moment:.1f} s"] for what, moment in facts["until"].items()]
    rows += [
        ["first step", f"{facts['seconds']:.1f} s"],
        ["of the processors", f"{facts['cpu_seconds']:.1f} s"],
        ["tokens to learn from, to validate on", " and ".join(f"{n:,}" for n in facts["tokens"])],
        ["peak memory", f"{facts['peak_mb']:.0f} MB"],
    ]
    return table([f"{size:,.0f} MB of text", ""], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--megabytes", type=float, default=1000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--turn-megabytes", type=float, default=32)
    parser.add_argument("--publish", action="store_true", help="write into docs/benchmarks.md")
    parser.add_argument("--begin", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.begin:
        begin(*map(Path, options.begin))
        return
    parts = [f"`python benchmarks/training_data.py` on {machine()}."]
    with tempfile.TemporaryDirectory() as place:
        if options.turns:
            parts.append(speeds(Path(place), options.turn_megabytes, options.turns))
            print(parts[-1], flush=True)
        if options.megabytes:
            parts.append(large(Path(place), options.megabytes))
            print(parts[-1], flush=True)
    if options.publish:
        publish("training data", "\n\n".join(parts))


if __name__ == "__main__":
    main()
