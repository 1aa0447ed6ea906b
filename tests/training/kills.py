"""Training runs that are killed or signalled at random moments, resumed, and compared bit for bit.

    python -m tests.training.kills --kills 1000
    python -m tests.training.kills --signals 200

torch is imported once; every life of a run is a fork, which costs milliseconds. A run is resumed
after each kill until it is done, and must then be the run that nobody disturbed: every loss, every
weight, every number of the optimiser. After each kill, every file that has its name is whole, and
the next life begins at the newest checkpoint.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from clearhead.cli.main import main as main_command
from clearhead.errors import ClearheadError
from clearhead.training.events import Finished, Started
from clearhead.training.run import train
from clearhead.training.run_folder import RunFolder
from clearhead.training.run_folder.checkpoint import Checkpoint

WORDS = ("the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "and", "some", "more")
MODEL = {
    "model": 8, "layers": 1, "heads": 2, "feed_forward": 8, "context": 8, "dropout": 0.1,
}  # fmt: skip
SETTINGS: dict[str, Any] = {
    "steps": 24, "batch_tokens": 64, "validate_every": 4, "average": 3, "warmup": 3,
    "checkpoint_minutes": 0.002,
}  # fmt: skip
LOST, FAILED = 17, 18  # exit codes
TAKEN = (signal.SIGINT, signal.SIGTERM)
MEMORY = Path("/dev/shm")  # where flushing costs nothing, if there is such a place
SHORT, LONGEST = 0.4, 120.0  # seconds of one life


@dataclass
class Count:
    """What happened."""

    kills: int = 0  # that hit a living process
    runs: int = 0
    lives: int = 0
    moments: Counter[str] = field(default_factory=Counter)  # what was being done, by what was left
    codes: Counter[int] = field(default_factory=Counter)


LONGEST_SLEEP = 3.0  # seconds before a kill, however slow the machine


class Harness:
    """One text, the undisturbed run of it, and disturbed ones."""

    def __init__(self, place: Path, seed: int, settings: dict[str, Any] | None = None) -> None:
        self.place, self.generator, self.count = place, random.Random(seed), Count()
        self.settings = SETTINGS if settings is None else settings
        self.last = self.settings["steps"]
        self.text = place / "words.txt"
        lines = (" ".join(self.generator.choice(WORDS) for _ in range(7)) for _ in range(30))
        self.text.write_text("\n".join(lines))
        whole = place / "whole"
        assert exit_code(forked(partial(self.live, whole))) == 0
        self.newest: int | None = None
        self.longest = SHORT
        self.wanted = outcome(whole)

    def live(self, folder: Path, newest: int | None = None) -> int:
        """One life of a run: begun or resumed; the exit code."""
        given: dict[str, Any] = {"out": folder, "device": "cpu"}
        if RunFolder(folder).begun:
            given |= {"resume": True}
        else:
            given |= {"texts": self.text, "tokenizer": "characters", "model": MODEL,
                      "settings": self.settings}  # fmt: skip
        done = False
        for event in train(**given):
            if isinstance(event, Started) and newest is not None and event.step != newest:
                return LOST
            done = isinstance(event, Finished)
        return 0 if done else FAILED

    def command(self, folder: Path, said: Path) -> int:
        """One life of a run by the command line; what it says goes into a file."""
        for stream in (1, 2):
            os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644), stream)
        options = ["--out", str(folder), "--device", "cpu"]
        if RunFolder(folder).begun:
            options += ["--resume"]
        else:
            changes = (MODEL | self.settings).items()
            options += [str(self.text), "--tokenizer", "characters"]
            options += [word for name, value in changes for word in ("--set", f"{name}={value}")]
        sys.argv = ["clearhead", "train", *options]
        try:
            main_command()
        except SystemExit as end:
            return int(end.code or 0)
        return 0

    def killed_run(self, wanted: int) -> None:
        """A run that is killed again and again until it is done, and compared."""
        folder = self.place / "killed"
        while True:
            newest = self._got_on(check_whole(folder))
            process = forked(partial(self.live, folder, newest))
            self.count.lives += 1
            hit, code = self._disturb(process, [signal.SIGKILL], wanted)
            self.count.kills += hit
            if code == 0:
                break
            assert code == -signal.SIGKILL, f"a life ended with {code}"
            self.count.moments[_left(folder)] += 1
        self._compare(folder)

    def signalled_run(self, wanted: int) -> None:
        """A run that gets SIGINT and SIGTERM until it is done, and is compared."""
        folder, said = self.place / "signalled", self.place / "said"
        while True:
            self._got_on(check_whole(folder))
            said.unlink(missing_ok=True)
            process = forked(partial(self.command, folder, said))
            self.count.lives += 1
            numbers = [self.generator.choice((signal.SIGINT, signal.SIGTERM))]
            if self.generator.random() < 0.2:
                numbers *= 2
            hit, code = self._disturb(process, numbers, wanted)
            self.count.kills += hit
            self.count.codes[code] += 1
            if code == 0:
                break
            self._check_words(folder, said, numbers, code)
        self._compare(folder)

    def _got_on(self, newest: int | None) -> int | None:
        """Let the next life be longer if the last one came to nothing, as on a busy machine."""
        self.longest = SHORT if newest != self.newest else self.longest * 1.3
        self.newest = newest
        return newest

    def _disturb(
        self, process: int, numbers: list[signal.Signals], wanted: int
    ) -> tuple[bool, int]:
        """Send signals at random moments; whether the first one hit, and the exit code."""
        if self.count.kills >= wanted:
            return False, exit_code(process)
        time.sleep(self.generator.random() * min(self.longest, LONGEST_SLEEP))
        hit = os.waitpid(process, os.WNOHANG)
        if hit != (0, 0):
            return False, os.waitstatus_to_exitcode(hit[1])
        for number in numbers:
            os.kill(process, number)
            time.sleep(self.generator.random() * 0.02 if len(numbers) > 1 else 0)
        return True, exit_code(process)

    def _check_words(
        self, folder: Path, said: Path, numbers: list[signal.Signals], code: int
    ) -> None:
        """The exit code is the signal's, the last step is saved, and how to go on is said."""
        number = numbers[0]
        early = said.read_text() if said.exists() else ""
        assert code in (128 + number, -number), f"exit code {code} after {numbers}: {early}"
        if code < 0 or len(numbers) > 1 or not RunFolder(folder).begun:
            return
        if "stopped after step" not in early:  # it was still reading the texts, or done already
            before = early in ("", "stopped.\n") or "to continue" in early
            assert before or RunFolder(folder).checkpoints.steps()[-1] == self.last, early
            return
        steps = [line["step"] for line in RunFolder(folder).log.lines()]
        newest = RunFolder(folder).checkpoints.steps()[-1]
        assert f"stopped after step {newest}." in early and "train --resume --out" in early
        assert max(steps, default=0) == newest, "a step was lost"

    def _compare(self, folder: Path) -> None:
        assert outcome(folder) == self.wanted, f"{folder} is another run"
        left = [path.name for path in folder.rglob(".*")]
        assert not left, f"left behind: {left}"
        shutil.rmtree(folder)
        self.count.runs += 1


def outcome(folder: Path) -> dict[str, Any]:
    """Everything that must be the same: losses, the model, the last checkpoints."""
    run = RunFolder(folder)
    lines = run.log.lines()
    losses = [(line["step"], kind, line[kind]) for line in lines for kind in ("loss", "validation")
              if kind in line]  # fmt: skip
    last = run.checkpoints.read(run.checkpoints.steps()[-1])
    return {
        "losses": losses, "step": last.step, "numbers": _bytes(last),
        "model": (folder / "model.safetensors").read_bytes(),
    }  # fmt: skip


def _bytes(checkpoint: Checkpoint) -> dict[str, bytes]:
    tensors = {f"w/{n}": t for n, t in checkpoint.weights.items()}
    tensors |= {f"o/{n}": t for n, t in checkpoint.optimiser.items()}
    return {name: tensor.numpy().tobytes() for name, tensor in tensors.items()}


def check_whole(folder: Path) -> int | None:
    """Every file that has its name is whole; the step of the newest checkpoint."""
    run = RunFolder(folder)
    if not run.begun:
        return None
    run.record()
    for name in run.record().files:
        run.checked(name)
    for step in run.checkpoints.steps():
        run.checkpoints.read(step)
    if (folder / "config.json").exists():
        json.loads((folder / "config.json").read_text())
        load_file(folder / "model.safetensors")
    return max(run.checkpoints.steps(), default=0)


def _left(folder: Path) -> str:
    """What a killed process was doing, by what it left."""
    if not RunFolder(folder).begun:
        return "before run.json"
    parts = [path.name.split(".")[1].rstrip("0123456789-") for path in folder.rglob(".*")]
    return f"writing {parts[0]}" if parts else "between writes"


def forked(life: Callable[[], int]) -> int:
    """Start a process that does this and ends with the exit code that it returns."""
    signal.pthread_sigmask(signal.SIG_BLOCK, TAKEN)  # until the child can take them
    process = os.fork()
    if process:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, TAKEN)
        return process
    code = FAILED
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, TAKEN)
        code = life()
        signal.pthread_sigmask(signal.SIG_BLOCK, TAKEN)
    except KeyboardInterrupt:  # before or after the command took care of it
        code = 128 + signal.SIGINT
    except ClearheadError as error:
        os.write(2, f"{error}\n".encode())
    finally:
        os._exit(code)


def exit_code(process: int) -> int:
    """Wait for a process; its exit code, negative after a signal."""
    deadline = time.monotonic() + LONGEST
    while time.monotonic() < deadline:
        found, status = os.waitpid(process, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    raise AssertionError(f"a life took more than {LONGEST} seconds")


def main() -> None:
    """The command: so many kills or signals, and the counts of what happened."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=0, help="how many times SIGKILL")
    parser.add_argument("--signals", type=int, default=0, help="how many times SIGINT or SIGTERM")
    parser.add_argument("--seed", type=int, default=None, help="random seed; else drawn and told")
    options = parser.parse_args()
    torch.set_num_threads(1)
    seed = random.randrange(10**6) if options.seed is None else options.seed
    wishes = (("kills", options.kills), ("signals", options.signals))
    for kind, wanted in [wish for wish in wishes if wish[1]]:
        with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as place:
            harness, began = Harness(Path(place), seed), time.monotonic()
            run = harness.killed_run if kind == "kills" else harness.signalled_run
            while harness.count.kills < wanted:
                run(wanted)
            count = harness.count
            sys.stdout.write(
                f"{count.kills} {kind} in {count.lives} lives of {count.runs} runs, all bit for "
                f"bit as undisturbed; {time.monotonic() - began:.0f} s, seed {seed}\n"
                f"{dict(count.moments if kind == 'kills' else count.codes)}\n"
            )
            sys.stdout.flush()


if __name__ == "__main__":
    main()
