"""What benchmarks/generation.py measures in processes of their own.

Memory, the first token, the first use, and two processes that share the machine. Run as a program,
this file is one such process: ``python -m generating.processes WHAT MODEL.gguf``.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from measure import megabytes, peak_memory, seconds, table

from clearhead.checkpoints.gguf.file import GGUFFile
from generating.contestants import TOKENS, Clearhead, Transformers, some_ids
from generating.files import FOLDER, in_catalogue
from generating.peers import Llama
from generating.random_file import SEVEN_BILLION, write_random

HERE = Path(__file__).resolve().parents[1]
PROMPT = "Students opened their"
BYTECODE = FOLDER / "bytecode"
SHARING_SECONDS, READING_SECONDS = 8.0, 3.0


def process(what: str, path: Path, **environment: str) -> subprocess.Popen[str]:
    """One of the functions below, in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "generating.processes", what, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"HF_HUB_OFFLINE": "1"} | environment,
        cwd=HERE,
    )


def answer(running: subprocess.Popen[str]) -> Any:
    """What it printed last."""
    printed = running.communicate()[0]
    return json.loads(printed.splitlines()[-1])


# Memory.
def memory(path: Path) -> str:
    """Peaks of everybody for the same work."""
    labels = {
        "held": "clearhead", "held_alone": "clearhead, no float32 kept",
        "held_transformers": "transformers",
    }  # fmt: skip
    rows = []
    for what, label in labels.items():
        found = answer(process(what, path))
        rows.append([label, megabytes(found["peak"]), megabytes(found["resident"])])
    llama = Llama(path, context=1024)
    llama.ask(prompts=[some_ids(512)], tokens=TOKENS, reuse=False)
    llama.end()
    rows.insert(2, ["llama.cpp", megabytes(llama.peak), megabytes(llama.resident)])
    return table(
        [f"load, a prompt of 512 tokens, {TOKENS} more", "peak memory", "at the end"], rows
    )


def held(path: Path) -> None:
    mine = Clearhead(path)
    mine.decode([some_ids(512)])()
    _tell_memory()


def held_alone(path: Path) -> None:
    mine = Clearhead(path, keep_float32=False)
    mine.decode([some_ids(512)])()
    _tell_memory(mine.cache_bytes(512 + TOKENS))


def held_transformers(path: Path) -> None:
    theirs = Transformers(path)
    theirs.decode([some_ids(512)])()
    _tell_memory()


def _tell_memory(cache: int = 0) -> None:
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    print(json.dumps({"peak": peak_memory(), "resident": resident, "cache": cache}))


# A large model.
def large(path: Path) -> str:
    """A model of 7 billion parameters with random blocks: written if need be, run and removed."""
    try:
        if not path.exists():
            write_random(path, "Q4_K", GGUFFile(in_catalogue("smollm2")), SEVEN_BILLION)
        size = path.stat().st_size
        found = answer(process("run_large", path))
    finally:
        path.unlink(missing_ok=True)
    speed = bandwidth(path)
    rows = [
        ["parameters", f"{found['parameters'] / 1e9:.2f} billion"],
        ["the file", megabytes(size)],
        ["weights that a step reads", megabytes(found["bytes"])],
        ["from nothing to the first token", seconds(found["first"])],
        ["peak memory", megabytes(found["peak"])],
        ["file × 1.25 + cache + 350 MB", megabytes(size * 1.25 + found["cache"] + 350e6)],
        ["decode, 16 tokens in the cache", f"{found['speed']:.3g} tokens/s"],
        ["read at", f"{found['bytes'] * found['speed'] / 1e9:.1f} GB/s"],
        [f"the limit at {speed / 1e9:.1f} GB/s", f"{speed / found['bytes']:.3g} tokens/s"],
    ]
    return table(["Mistral's shape in Q4_K", ""], rows)


def run_large(path: Path) -> None:
    start = time.perf_counter()
    mine = Clearhead(path, keep_float32=False)
    mine.new(mine.engine).extend([some_ids(16)])
    first = time.perf_counter() - start
    speed = 1 / statistics.median(mine.decode([some_ids(16)])() for _ in range(2))
    found = {
        "first": first, "speed": speed, "peak": peak_memory(),
        "bytes": mine.engine.weight_bytes, "cache": mine.cache_bytes(16 + TOKENS),
        "parameters": sum(part.numel() for part in mine.loaded.model.parameters()),
    }  # fmt: skip
    print(json.dumps(found))


# The first token.
def first_tokens(path: Path, rounds: int) -> dict[str, list[float]]:
    """From the command to the first letter on the screen: ours and llama.cpp's, in turns. The first
    of the rounds + 1 times is that of a cold start."""
    command = [sys.executable, "-m", "clearhead", "generate", PROMPT, "--model", str(path)]
    ours = [*command, "--max-tokens", "4", "--temperature", "0"]
    took: dict[str, list[float]] = {"clearhead": [], "llama.cpp": []}
    for _ in range(rounds + 1):
        took["clearhead"].append(_until_letter(ours))
        took["llama.cpp"].append(_until_llama(path))
    return took


def first_token(paths: Mapping[str, Path], rounds: int) -> str:
    """From the command to the first letter on the screen, everything cached. transformers starts
    once for warming up and once for the figure, with the first file only: it takes long."""
    rows: list[list[str]] = []
    for label, path in paths.items():
        took = first_tokens(path, rounds)
        theirs = [sys.executable, "-m", "generating.processes", "write_transformers", str(path)]
        took["transformers"] = [] if rows else [_until_letter(theirs) for _ in range(2)]
        rows.append([label, *(_median_after_first(found) for found in took.values())])
    return table(["from the command to the first token", *took], rows)


def _median_after_first(took: list[float]) -> str:
    return seconds(statistics.median(took[1:])) if took else "not run"


def _until_letter(command: list[str]) -> float:
    """Bytecode is kept, as Python does unless it is told not to: reading the sources anew at each
    start takes a quarter of a second."""
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "PYTHONPYCACHEPREFIX": str(BYTECODE)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    start = time.perf_counter()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, cwd=HERE
    ) as running:
        assert running.stdout is not None
        if not running.stdout.read(1):
            raise SystemExit(f"nothing came from {' '.join(command)}")
        took = time.perf_counter() - start
        running.stdout.read()
    return took


def _until_llama(path: Path) -> float:
    start = time.perf_counter()
    llama = Llama(path, context=128)
    llama.ask(prompts=[some_ids(3)], tokens=1, reuse=False)
    took = time.perf_counter() - start
    llama.end()
    return took


def write_transformers(path: Path) -> None:
    theirs = Transformers(path)
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(str(path.parent), gguf_file=path.name)
    ids = torch.tensor([tokenizer.encode(PROMPT)])
    found = theirs.model.generate(ids, max_new_tokens=1, do_sample=False)
    print(tokenizer.decode(found[0, ids.shape[1] :]), flush=True)


# The first use.
def first_use(path: Path) -> str:
    """How long the kernels take to compile, and to load once they are on disk."""
    with tempfile.TemporaryDirectory() as folder:
        took = [answer(process("prepare", path, NUMBA_CACHE_DIR=folder)) for _ in range(3)]
        size = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
    rows = [
        ["compile, once", seconds(took[0])],
        ["load from disk, in every later process", seconds(min(took[1:]))],
        ["on disk", megabytes(size)],
    ]
    return table(["the engine's kernels", ""], rows)


def prepare(_path: Path) -> None:
    from clearhead.engine.engine import Engine, engine_runs_here

    engine_runs_here()  # imports numba if nothing is kept
    start = time.perf_counter()
    Engine.prepare()
    print(json.dumps(time.perf_counter() - start))


# Two processes.
def sharing(path: Path) -> str:
    """Decoding alone, and twice at the same time on the same cores."""
    found: dict[str, tuple[float, list[float]]] = {
        "clearhead": (_together(path, 1, _decoder)[0], _together(path, 2, _decoder)),
        "llama.cpp": (_together(path, 1, _llama)[0], _together(path, 2, _llama)),
    }
    rows = []
    for name, (alone, both) in found.items():
        shares = [f"{speed:.4g} ({speed / alone:.0%})" for speed in both]
        rows.append([name, f"{alone:.4g}", *shares, f"{sum(both) / alone:.0%}"])
    head = ["decode, tokens/s", "alone", "one of two", "the other", "together, of alone"]
    return table(head, rows)


def _together(
    path: Path, count: int, contestant: Callable[[Path], Callable[[], float]]
) -> list[float]:
    """Tokens each second of so many contestants that start at the same moment."""
    ready = [contestant(path) for _ in range(count)]
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(lambda go: go(), ready))


def _decoder(path: Path) -> Callable[[], float]:
    return _waiting(process("decode_on", path))


def _waiting(running: subprocess.Popen[str]) -> Callable[[], float]:
    """Lets a process that is ready go on, and returns the figure that it prints."""
    assert running.stdout is not None and running.stdin is not None
    running.stdout.readline()

    def go() -> float:
        speed: float = json.loads(running.communicate("go\n")[0])
        return speed

    return go


def decode_on(path: Path) -> None:
    work = Clearhead(path).decode([some_ids(16)])
    work()
    print("ready", flush=True)
    sys.stdin.readline()
    print(json.dumps(_speed(work)))


def _llama(path: Path) -> Callable[[], float]:
    llama = Llama(path, context=128)
    work = llama.decode([some_ids(16)])
    work()

    def go() -> float:
        speed = _speed(work)
        llama.end()
        return speed

    return go


def _speed(work: Callable[[], float]) -> float:
    """Tokens each second over some seconds, by what the rounds say they took."""
    took = []
    end = time.perf_counter() + SHARING_SECONDS
    while time.perf_counter() < end:
        took.append(work())
    return len(took) / sum(took)


# What the machine can read.
def bandwidth(path: Path) -> float:
    """Bytes each second that all cores read together, each in a process of its own.

    One process's threads do not show it: torch's sum on two threads read 32 GB/s in a run in which
    two decoding processes read 47. It drifts with the machine's neighbours: compare within a run.
    """
    return sum(_together(path, torch.get_num_threads(), _reader))


def _reader(path: Path) -> Callable[[], float]:
    return _waiting(process("read_on", path, OMP_NUM_THREADS="1"))


def read_on(_path: Path) -> None:
    numbers = torch.ones(1 << 27)  # 537 MB, far more than any cache
    numbers.sum()
    print("ready", flush=True)
    sys.stdin.readline()
    start, rounds = time.perf_counter(), 0
    while time.perf_counter() - start < READING_SECONDS:
        numbers.sum()
        rounds += 1
    print(json.dumps(rounds * numbers.numel() * 4 / (time.perf_counter() - start)))


PROCESSES: Mapping[str, Callable[[Path], None]] = {
    work.__name__: work
    for work in (
        held,
        held_alone,
        held_transformers,
        write_transformers,
        prepare,
        decode_on,
        read_on,
        run_large,
    )
}

if __name__ == "__main__":
    PROCESSES[sys.argv[1]](Path(sys.argv[2]))
