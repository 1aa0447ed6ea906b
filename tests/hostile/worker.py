"""A forked process in which mutants are tried, one after another, each with a limit on everything.

Fork, because importing torch takes longer than a thousand mutants. The kernel's timers end a mutant
that takes too long, even in code that is deaf to Python; the parent sees the death and starts
another process behind the mutant.
"""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import signal
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from random import Random

from tests.hostile.mutant import Files, Format, clear, mutant, write
from tests.hostile.outcome import Outcome, judged

WAIT = 30.0  # seconds that a process may wait for others, beside what it may compute
ADDRESS_SPACE = 3 * 2**30  # bytes beyond what the process has when it starts
MAPPED = 10  # times the size of the files, which the memory may be
SLOW = ("SIGPROF", "SIGALRM")


def tried(format: Format, seed: int, numbers: Iterable[int]) -> Iterator[Outcome]:
    """Try mutants by their numbers; an outcome for each, in order."""
    waiting = list(numbers)
    while waiting:
        done = 0
        outcomes = _in_process(format, waiting, lambda number: _files(format, seed, number))
        with closing(outcomes):
            for outcome in outcomes:
                yield outcome
                done += 1
        waiting = waiting[done:]


def of_files_in_process(format: Format, files: Files, uses: Sequence[int] = (0,)) -> Outcome:
    """Try some files in a process of their own, used in several ways; the first that fails."""
    with closing(_in_process(format, list(uses), lambda _: files)) as outcomes:
        for outcome in outcomes:
            if outcome.failed:
                break
    return outcome


def _files(format: Format, seed: int, number: int) -> Files:
    return mutant(format, seed, number).made()


def _in_process(
    format: Format, numbers: list[int], files_of: Callable[[int], Files]
) -> Generator[Outcome, None, None]:
    """Outcomes until the process ends; if it died, the last one says so."""
    reading, writing = os.pipe()
    with tempfile.TemporaryDirectory(dir=_quick_disk(), prefix="hostile-") as folder:
        child = os.fork()
        if child == 0:
            os.close(reading)
            _work(format, numbers, files_of, Path(folder), writing)
        os.close(writing)
        done, outcome = 0, None
        try:
            with os.fdopen(reading, "rb") as lines:
                for line in lines:
                    done += 1
                    outcome = Outcome(**json.loads(line))
                    yield outcome
        finally:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
        if done < len(numbers) and not (outcome and outcome.what == "memory"):
            yield _death(numbers[done], status)


def _death(number: int, status: int) -> Outcome:
    name = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else "exit"
    return Outcome(number, "time" if name in SLOW else "crash", f"the process died: {name}")


def _quick_disk() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _work(
    format: Format,
    numbers: list[int],
    files_of: Callable[[int], Files],
    folder: Path,
    writing: int,
) -> None:
    """The life of the process: it never returns."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # Rust reports its panics there
        faulthandler.disable()  # a death is reported by the parent
        os.environ["RUST_BACKTRACE"] = "0"  # reading the symbols would take 50 MB
        _limit_address_space()
        for number in numbers:
            outcome = _honest(format, files_of, number, folder)
            os.write(writing, json.dumps(outcome.fields()).encode() + b"\n")
            if outcome.what == "memory":
                break
        os._exit(0)
    finally:
        os._exit(1)


def _honest(format: Format, files_of: Callable[[int], Files], number: int, folder: Path) -> Outcome:
    try:
        signal.setitimer(signal.ITIMER_REAL, 10 * WAIT)  # for the mutator
        return one(format, files_of(number), number, folder)
    except Exception as error:  # of the mutator: nothing was tried, and that must not look good
        return Outcome(number, "crash", f"no mutant was made: {error!r:.200}")


def one(format: Format, files: Files, number: int, folder: Path) -> Outcome:
    """Try some files in this process."""
    clear(folder)
    size = write(files, folder)
    before = _memory_from_now()
    start = time.perf_counter()
    signal.setitimer(signal.ITIMER_PROF, format.seconds)
    signal.setitimer(signal.ITIMER_REAL, WAIT + format.seconds)
    outcome = judged(number, lambda: format.use(folder, Random(number)))
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.setitimer(signal.ITIMER_REAL, 0)
    megabytes = (_most_memory() - before) / 1e6
    outcome = replace(
        outcome, seconds=round(time.perf_counter() - start, 6), megabytes=round(megabytes, 1)
    )
    if megabytes > format.megabytes + MAPPED * size / 1e6 and not outcome.failed:
        limit = f"{megabytes:.0f} MB for files of {size / 1e6:.2f} MB"
        return replace(outcome, what="memory", error=f"{limit}: {outcome.error}")
    return outcome


def _limit_address_space() -> None:
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    most = held + ADDRESS_SPACE
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _memory_from_now() -> int:
    """Bytes in memory now; from here on the kernel notes the most of them anew."""
    with open("/proc/self/clear_refs", "w") as file:  # noqa: PTH123 - twice as quick
        file.write("5")
    return _status(b"VmRSS:")


def _most_memory() -> int:
    return _status(b"VmHWM:")


def _status(name: bytes) -> int:
    with open("/proc/self/status", "rb") as file:  # noqa: PTH123
        text = file.read()
    start = text.index(name) + len(name)
    return int(text[start : text.index(b"kB", start)]) * 1024
