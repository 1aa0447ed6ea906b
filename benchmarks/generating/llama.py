"""llama.cpp's side of benchmarks/generation.py, in an environment of its own (xllamacpp).

Reads one JSON request a line and answers each with one line: llama.cpp's own timings.
"""

from __future__ import annotations

import importlib
import json
import sys
import threading
from pathlib import Path
from typing import Any


def server(path: str, threads: int, context: int, rows: int) -> Any:
    xllamacpp = importlib.import_module("xllamacpp")  # in its own environment only
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.n_ctx = context * rows
    params.n_parallel = rows
    params.n_gpu_layers = 0
    params.verbosity = -1
    params.cache_ram_mib = 0
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    return xllamacpp.Server(params)


def complete(running: Any, ids: list[int], tokens: int, reuse: bool) -> dict[str, Any]:
    """One completion; ``reuse`` keeps what the last one computed of the same prompt."""
    answers: list[dict[str, Any]] = []
    request = {
        "prompt": ids,
        "n_predict": tokens,
        "max_tokens": tokens,
        "temperature": 0.0,
        "ignore_eos": True,
        "cache_prompt": reuse,
        "timings_per_token": True,
    }

    def take(answer: Any) -> None:
        answers.append(json.loads(answer) if isinstance(answer, str | bytes) else answer)

    found = running.handle_completions(json.dumps(request), take)
    if found is not None:
        take(found)
    return answers[-1]


def work(
    running: Any, request: dict[str, Any], ids: list[int], found: list[dict[str, Any]]
) -> None:
    found.append(complete(running, ids, request["tokens"], request.get("reuse", False)))


def memory() -> dict[str, int]:
    """Bytes held at most so far, and now (Linux). ``ru_maxrss`` would count the parent's, too."""
    lines = Path("/proc/self/status").read_text().splitlines()
    held = {line.split()[0]: int(line.split()[1]) * 1024 for line in lines if "kB" in line}
    return {"peak": held["VmHWM:"], "resident": held["VmRSS:"]}


def main() -> None:
    path, threads, context, rows = sys.argv[1], *map(int, sys.argv[2:5])
    running = server(path, threads, context, rows)
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        found: list[dict[str, Any]] = []
        several = [
            threading.Thread(target=work, args=(running, request, ids, found))
            for ids in request["prompts"]
        ]
        for thread in several:
            thread.start()
        for thread in several:
            thread.join()
        timings = [answer.get("timings", answer) for answer in found]
        print(json.dumps({"timings": timings} | memory()), flush=True)


if __name__ == "__main__":
    main()
