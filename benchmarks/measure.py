"""How benchmarks measure: alternating rounds, medians, peak memory, one table for the docs."""

from __future__ import annotations

import platform
import re
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs" / "benchmarks.md"
DATA = ROOT / "build" / "data"  # corpora, which are not ours to ship
SECONDS_PER_ROUND = 0.2  # of each contestant, if its work is quicker than that
SECONDS_PER_TURN = 0.04  # a turn repeats quick work until it is long enough to time


def medians(contestants: Mapping[str, Callable[[], object]], rounds: int = 7) -> dict[str, float]:
    """Median seconds of each contestant; they take turns, so that a slow moment hits all.

    In its turn a contestant repeats quick work: see :func:`call_by_call`.
    """
    repeats, slowest = {}, 0.0
    for name, work in contestants.items():
        took = _time(work, 1)  # warm: compiled, cached, paged in
        if took < 1.0:
            took = _time(work, 1)
        repeats[name] = max(1, min(2000, round(SECONDS_PER_TURN / max(took, 1e-7))))
        slowest = max(slowest, took)
    turns = max(1, round(SECONDS_PER_ROUND / max(slowest, SECONDS_PER_TURN)))  # of a round
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds * turns):
        for name, work in contestants.items():
            times[name].append(_time(work, repeats[name]))
    return {name: statistics.median(found) for name, found in times.items()}


def call_by_call(contestants: Mapping[str, Callable[[], object]], calls: int) -> dict[str, float]:
    """Median seconds of each contestant when they take turns after every single call.

    Then no one finds caches and memory as its own last call left them, as in a model.
    """
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for number in range(calls + 1):
        for name, work in contestants.items():
            took = _time(work, 1)
            if number:  # the first one warms up
                times[name].append(took)
    return {name: statistics.median(found) for name, found in times.items()}


def _time(work: Callable[[], object], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        work()
    return (time.perf_counter() - start) / repeats


def peer_environment(name: str, packages: Sequence[str]) -> Path:
    """Python with the packages of a peer: made below build/ on first use, as they are not ours."""
    folder = ROOT / "build" / f"bench-{name}"
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        print(f"installing {name} into {folder.relative_to(ROOT)} …", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "torch", *packages]
        subprocess.run([*pip, "--constraint", str(ROOT / "constraints.txt")], check=True)
        (folder / "ready").touch()
    return python


def corpus_at(path: Path, what: str) -> Path:
    """The path, if it is there."""
    if not path.exists():
        raise SystemExit(
            f"{what} is wanted at {path}, where there is nothing: put it there, or say where it "
            "is (--help)."
        )
    return path


def peak_memory() -> int:
    """The most memory that this process has held so far, in bytes (Linux)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    raise SystemExit("this system does not tell a process's peak memory")


def memory_of(work: Callable[[], object]) -> int:
    """Bytes that the work took above what was held before it, by watching it (Linux).

    Memory that an earlier run freed but the process kept hides some of it: for tables of peaks ask
    :func:`peak_memory` in a fresh process.
    """
    before, peak, done = _resident(), 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.is_set():
            peak = max(peak, _resident())
            time.sleep(0.0005)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        work()
    finally:
        done.set()
        watcher.join()
    return max(0, peak - before)


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def seconds(value: float) -> str:
    """A time with a fitting unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value * 1e6:.2g} µs"


def megabytes(value: float) -> str:
    """A size in MB."""
    return f"{value / 1e6:.0f} MB"


def machine() -> str:
    """The machine in one line."""
    model = "unknown CPU"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    threads = torch.get_num_threads()
    widest = torch.backends.cpu.get_cpu_capability()
    return (
        f"{model} ({widest}), {threads} thread{'s' * (threads != 1)}, Python "
        f"{platform.python_version()}, torch {torch.__version__}"
    )


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def publish(section: str, text: str) -> None:
    """Put a benchmark's text into its section of docs/benchmarks.md."""
    page = DOCS.read_text()
    begin, end = f"<!-- {section} -->", f"<!-- /{section} -->"
    pattern = re.compile(re.escape(begin) + r".*?" + re.escape(end), re.DOTALL)
    if not pattern.search(page):
        raise SystemExit(f"docs/benchmarks.md has no section {begin} … {end}")
    DOCS.write_text(pattern.sub(lambda _: f"{begin}\n{text}\n{end}", page))


def publish_part(section: str, title: str, text: str) -> None:
    """Put one part, which begins with its title, into its section; the other parts stay."""
    begin, end = f"<!-- {section} -->", f"<!-- /{section} -->"
    held = DOCS.read_text().partition(begin)[2].partition(end)[0].strip()
    parts = held.split("\n\n**")
    places = [at for at, part in enumerate(parts) if part.startswith(f"{title}**")]
    new = f"{title}**\n\n{text}"
    if places:
        parts[places[0]] = new
    else:
        parts.append(new)
    publish(section, "\n\n**".join(parts))
