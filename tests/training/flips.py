"""Run folders with a flipped bit: each flip is noticed, or the resumed run is bit for bit the same.

    python -m tests.training.flips --flips 2000

A run is stopped in its middle. In a copy of its folder one bit of one file is flipped, every file
in turn, and the run is resumed in a fork. It is refused with one of our errors; or it goes on with
a warning, to the same numbers; or it goes on in silence, and then everything must be the same.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path

import torch

from clearhead.errors import ClearheadError
from clearhead.training.events import Finished, Stepped, Warned
from clearhead.training.run import train
from tests.training.kills import MEMORY, MODEL, SETTINGS, Harness, exit_code, forked, outcome

REFUSED, TOLD = 3, 4  # exit codes
MIDDLE = 18  # the step after which the run is stopped
QUIET = SETTINGS | {"checkpoint_minutes": 10}


class Flips(Harness):
    """A run that was stopped in its middle, and copies of it with a flipped bit."""

    def __init__(self, place: Path, seed: int) -> None:
        super().__init__(place, seed, QUIET)
        self.half, self.found = place / "half", Counter[tuple[str, str]]()
        assert exit_code(forked(self.stopped)) == 0
        self.files = sorted(path.relative_to(self.half) for path in self.half.rglob("*")
                            if path.is_file() and path.stat().st_size)  # fmt: skip

    def stopped(self) -> int:
        """The first half of the run."""
        steps = 0

        def enough() -> bool:
            return steps >= MIDDLE

        for event in train(self.text, out=self.half, device="cpu", tokenizer="characters",
                           model=MODEL, settings=QUIET, stop=enough):  # fmt: skip
            steps = event.step if isinstance(event, Stepped) else steps
        return 0

    def resumed(self, folder: Path) -> int:
        """The second half, in a folder that may be damaged."""
        told = done = False
        try:
            for event in train(out=folder, resume=True, device="cpu"):
                told = told or isinstance(event, Warned)
                done = isinstance(event, Finished)
        except ClearheadError:
            return REFUSED
        assert done
        return TOLD if told else 0

    def flip(self, name: Path) -> None:
        """Flip one bit of a file in a copy, resume, and compare."""
        folder = self.place / "flipped"
        shutil.copytree(self.half, folder)
        data = bytearray((folder / name).read_bytes())
        place, bit = self.generator.randrange(len(data)), self.generator.randrange(8)
        data[place] ^= 1 << bit
        (folder / name).write_bytes(data)
        code = exit_code(forked(partial(self.resumed, folder)))
        where = f"bit {bit} of byte {place} of {name}"
        assert code in (0, REFUSED, TOLD), f"{where}: exit code {code}"
        if code != REFUSED:
            wanted, found = dict(self.wanted), outcome(folder)
            if code == TOLD:  # of a damaged log, lines may be missing
                wanted.pop("losses")
                found.pop("losses")
            assert found == wanted, f"{where} went unnoticed"
        self.found[_kind(name), {0: "harmless", REFUSED: "refused", TOLD: "told"}[code]] += 1
        shutil.rmtree(folder)


def _kind(name: Path) -> str:
    return "step-*" if name.name.startswith("step-") else name.as_posix()


def main() -> None:
    """The command: so many flips, over all files in turn, and the counts of what happened."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--flips", type=int, default=100, help="how many bits")
    parser.add_argument("--seed", type=int, default=None, help="random seed; else drawn and told")
    options = parser.parse_args()
    torch.set_num_threads(1)
    seed = random.randrange(10**6) if options.seed is None else options.seed
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as place:
        flips, began = Flips(Path(place), seed), time.monotonic()
        for number in range(options.flips):
            flips.flip(flips.files[number % len(flips.files)])
        sys.stdout.write(
            f"{options.flips} flips in {len(flips.files)} files, each noticed or without effect; "
            f"{time.monotonic() - began:.0f} s, seed {seed}\n"
        )
        for (name, what), count in sorted(flips.found.items()):
            sys.stdout.write(f"{name:32} {what:10} {count}{os.linesep}")


if __name__ == "__main__":
    main()
