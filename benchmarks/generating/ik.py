"""ik_llama.cpp's side of benchmarks/generation.py, in an environment of its own.

Reads one JSON request a line and answers each with one line: the seconds of its ``llama_decode``
calls, or the logits after every token of a prompt (written to a file).
"""

from __future__ import annotations

import ctypes
import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any


class Model:
    """A file, loaded, and a cache of one or several rows."""

    def __init__(self, path: str, threads: int, context: int, rows: int, flash: bool) -> None:
        self.c = importlib.import_module("ik_llama_cpp._ctypes_api")
        inner = importlib.import_module("ik_llama_cpp._internals")
        self.model = inner.IkModel(path)
        options = {"n_threads": threads, "flash_attn": flash, "n_seq_max": rows}
        self.context = inner.IkContext(self.model, n_ctx=context * rows, **options)
        self.held: list[list[int]] = []
        self.words = self.c.llama_vocab_n_tokens(self.c.llama_model_get_vocab(self.model.model))

    def decode(self, tokens: list[tuple[int, int, int]], every: bool = False) -> float:
        """Seconds for tokens, each with its position and row; logits after each row's last."""
        batch = self.c.llama_batch_init(len(tokens), 0, 1)
        batch.n_tokens = len(tokens)
        last = {row: number for number, (_, _, row) in enumerate(tokens)}
        for number, (token, position, row) in enumerate(tokens):
            batch.token[number], batch.pos[number] = token, position
            batch.n_seq_id[number], batch.seq_id[number][0] = 1, row
            batch.logits[number] = int(every or number == last[row])
        start = time.perf_counter()
        code = self.context.decode(batch)
        self.c.llama_get_logits_ith(self.context.ctx, len(tokens) - 1)
        took = time.perf_counter() - start
        self.c.llama_batch_free(batch)
        if code != 0:
            raise SystemExit(f"llama_decode failed: {code}")
        return took

    def fill(self, prompts: list[list[int]]) -> float:
        """Seconds for prompts, from an empty cache."""
        self.context.kv_cache_clear()
        self.held = prompts
        took, size = 0.0, self.context._n_ubatch
        for row, ids in enumerate(prompts):
            tokens = [(token, position, row) for position, token in enumerate(ids)]
            for start in range(0, len(tokens), size):
                took += self.decode(tokens[start : start + size])
        return took

    def crop(self, prompts: list[list[int]]) -> bool:
        """Drop all but these prompts; False if they are not what the cache holds."""
        if prompts != self.held:
            return False
        rm = self.c._lib.llama_kv_cache_seq_rm
        rm.argtypes, rm.restype = [ctypes.c_void_p, *[ctypes.c_int32] * 3], ctypes.c_bool
        return all(rm(self.context.ctx, row, len(ids), -1) for row, ids in enumerate(prompts))

    def logits(self, ids: list[int], target: str) -> float:
        """Write the logits after every token of a prompt, as float32: those of each call are gone
        after the next one."""
        self.context.kv_cache_clear()
        self.held = []
        took, size = 0.0, self.context._n_ubatch
        with Path(target).open("wb") as file:
            for start in range(0, len(ids), size):
                tokens = [
                    (token, start + i, 0) for i, token in enumerate(ids[start : start + size])
                ]
                took += self.decode(tokens, every=True)
                for number in range(len(tokens)):
                    found = self.c.llama_get_logits_ith(self.context.ctx, number)
                    file.write(ctypes.string_at(found, 4 * self.words))
        return took


def answer(model: Model, request: dict[str, Any]) -> float:
    """Seconds: for a prompt, or for each of ``tokens`` steps after the prompts."""
    prompts, tokens = request["prompts"], request["tokens"]
    if "logits" in request:
        return model.logits(prompts[0], request["logits"])
    took = 0.0 if request.get("reuse") and model.crop(prompts) else model.fill(prompts)
    if tokens <= 1:
        return took
    lengths = [len(ids) for ids in prompts]
    rows = range(len(prompts))
    steps = [
        model.decode([(7, lengths[row] + step, row) for row in rows]) for step in range(tokens)
    ]
    mean: float = sum(steps) / tokens
    return mean


def memory() -> dict[str, int]:
    """Bytes held at most so far, and now (Linux). ``ru_maxrss`` would count the parent's, too."""
    lines = Path("/proc/self/status").read_text().splitlines()
    held = {line.split()[0]: int(line.split()[1]) * 1024 for line in lines if "kB" in line}
    return {"peak": held["VmHWM:"], "resident": held["VmRSS:"]}


def main() -> None:
    path, threads, context, rows = sys.argv[1], *map(int, sys.argv[2:5])
    model = Model(path, threads, context, rows, flash="flash" in sys.argv[5:])
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        print(json.dumps({"seconds": answer(model, json.loads(line))} | memory()), flush=True)


if __name__ == "__main__":
    main()
