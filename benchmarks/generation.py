"""Generation against llama.cpp and transformers: ``python benchmarks/generation.py [--publish]``.

SmolLM2 from one GGUF file, in one run, alternating rounds, medians. llama.cpp (the wheel
``xllamacpp``) lives in an environment of its own, build/bench-llama, which is made on first use;
its figures are its own timings. ``--only decode,prefill`` runs some of the parts.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import pydoc_data.topics
import statistics
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from measure import machine, megabytes, publish, seconds, table
from torch import Tensor
from torch.nn import functional

HERE = Path(__file__).resolve().parent
LLAMA = HERE.parent / "build" / "bench-llama"
ROUNDS, TOKENS = 7, 16  # tokens that are decoded in a round
WINDOW = 512  # tokens of a text for quality
NAMES = ("clearhead", "llama.cpp", "transformers")


class Clearhead:
    """Our side: the engine."""

    def __init__(self, path: Path) -> None:
        import clearhead as ch
        from clearhead.generation.engine_runner import EngineRunner, engine_of

        self.loaded = ch.load(path)
        self.engine = engine_of(self.loaded.model)  # type: ignore[arg-type]
        self.new = EngineRunner

    def decode(self, rows: list[list[int]]) -> Callable[[], float]:
        """A round: seconds for each token, after a prompt that stays in the cache."""
        runner = self.new(self.engine)
        runner.extend(rows)
        held = runner.length

        def work() -> float:
            start = time.perf_counter()
            for _ in range(TOKENS):
                runner.extend([[7]] * len(rows)).argmax(-1)
            took = time.perf_counter() - start
            runner.crop(held)
            return took / TOKENS

        return work

    def prefill(self, ids: list[int]) -> Callable[[], float]:
        def work() -> float:
            runner = self.new(self.engine)
            start = time.perf_counter()
            runner.extend([ids])
            return time.perf_counter() - start

        return work


class Transformers:
    """transformers, float32, with its cache."""

    def __init__(self, path: Path) -> None:
        import transformers

        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        os.environ["TQDM_DISABLE"] = "1"  # the conversion's own bar
        self.cache = transformers.DynamicCache
        self.model = transformers.AutoModelForCausalLM.from_pretrained(
            str(path.parent), gguf_file=path.name, dtype=torch.float32
        ).eval()

    def decode(self, rows: list[list[int]]) -> Callable[[], float]:
        cache = self.cache()
        with torch.no_grad():
            for start in range(0, len(rows[0]), 512):
                ids = torch.tensor(rows)[:, start : start + 512]
                self.model(ids, past_key_values=cache, logits_to_keep=1)
        ids = torch.full((len(rows), 1), 7)

        def work() -> float:
            with torch.no_grad():
                start = time.perf_counter()
                for _ in range(TOKENS):
                    self.model(ids, past_key_values=cache).logits[:, -1].argmax(-1)
                took = time.perf_counter() - start
            cache.crop(-TOKENS)
            return took / TOKENS

        return work

    def prefill(self, ids: list[int]) -> Callable[[], float]:
        tokens = torch.tensor([ids])

        def work() -> float:
            with torch.no_grad():
                start = time.perf_counter()
                self.model(tokens, past_key_values=self.cache(), logits_to_keep=1)
                return time.perf_counter() - start

        return work


class Llama:
    """llama.cpp in a process of its own; it sleeps while the others have their turn."""

    def __init__(self, path: Path, *, context: int, rows: int = 1) -> None:
        threads = torch.get_num_threads()
        command = [llama_python(), str(HERE / "generation_llama.py"), str(path)]
        self.process = subprocess.Popen(
            [*command, str(threads), str(context), str(rows)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.peak = 0
        self._answer()

    def ask(self, prompts: list[list[int]], tokens: int, *, reuse: bool) -> list[dict[str, float]]:
        assert self.process.stdin is not None
        request = {"prompts": prompts, "tokens": tokens, "reuse": reuse}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = self._answer()
        self.peak = max(self.peak, answer["peak"])
        timings: list[dict[str, float]] = answer["timings"]
        return timings

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("{"):
                found: dict[str, Any] = json.loads(line)
                return found
        raise SystemExit("llama.cpp ended early")

    def decode(self, rows: list[list[int]]) -> Callable[[], float]:
        def work() -> float:
            found = self.ask(rows, TOKENS, reuse=True)
            return max(each["predicted_per_token_ms"] for each in found) / 1e3

        return work

    def prefill(self, ids: list[int]) -> Callable[[], float]:
        def work() -> float:
            return self.ask([ids], 1, reuse=False)[0]["prompt_ms"] / 1e3

        return work

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def llama_python() -> str:
    """The environment of llama.cpp, made if need be."""
    python = LLAMA / "bin" / "python"
    if not python.exists():
        print("setting up llama.cpp in build/bench-llama …", flush=True)
        venv.create(LLAMA, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "xllamacpp"], check=True)
    return str(python)


def turns(work: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """The median of what each says it took; they take turns."""
    for each in work.values():
        each()
    took: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(rounds):
        for name, each in work.items():
            took[name].append(each())
    return {name: statistics.median(found) for name, found in took.items()}


def some_ids(count: int) -> list[int]:
    generator = torch.Generator().manual_seed(count)
    return torch.randint(5, 40_000, (count,), generator=generator).tolist()


def row(label: str, took: Mapping[str, float], tokens: int) -> list[str]:
    """Tokens each second of everybody, and how much faster we are."""
    mine = took["clearhead"]
    speeds = [f"{tokens / took[name]:.4g}" for name in NAMES]
    return [label, *speeds, *(f"{took[name] / mine:.2f}×" for name in NAMES[1:])]


HEADER = ["tokens/s", *NAMES, "faster than llama.cpp", "than transformers"]


def decoding(path: Path, rounds: int, sizes: list[int]) -> str:
    mine, theirs = Clearhead(path), Transformers(path)
    llama = Llama(path, context=max(sizes) + 64)
    rows = []
    for size in sizes:
        ids = some_ids(size)
        work = {
            "clearhead": mine.decode([ids]),
            "llama.cpp": llama.decode([ids]),
            "transformers": theirs.decode([ids]),
        }
        rows.append(row(f"decode, {size:,} tokens in the cache", turns(work, rounds), 1))
    llama.end()
    eight = [some_ids(16 + i)[:16] for i in range(8)]
    llama = Llama(path, context=128, rows=8)
    work = {
        "clearhead": mine.decode(eight),
        "llama.cpp": llama.decode(eight),
        "transformers": theirs.decode(eight),
    }
    rows.append(row("decode, batch of 8, 16 tokens in the cache", turns(work, rounds), 8))
    llama.end()
    return table(HEADER, rows)


def prefilling(path: Path, rounds: int, sizes: list[int]) -> str:
    mine, theirs = Clearhead(path), Transformers(path)
    llama = Llama(path, context=max(sizes) + 64)
    rows = []
    for size in sizes:
        ids = some_ids(size)
        work = {
            "clearhead": mine.prefill(ids),
            "llama.cpp": llama.prefill(ids),
            "transformers": theirs.prefill(ids),
        }
        rows.append(row(f"prompt of {size:,} tokens", turns(work, rounds), size))
    llama.end()
    return table(HEADER, rows)


def without_cache(path: Path, rounds: int, sizes: list[int]) -> str:
    """The same next token, with the past in the cache and with all of it computed again."""
    mine = Clearhead(path)
    rows = []
    for size in sizes:
        ids = some_ids(size)
        took = turns({"cached": mine.decode([ids]), "again": mine.prefill(ids)}, rounds)
        ratio = f"{took['again'] / took['cached']:.0f}×"
        rows.append([f"{size:,}", seconds(took["cached"]), seconds(took["again"]), ratio])
    return table(["tokens before", "a token with the cache", "without", "the cache buys"], rows)


def bandwidth() -> float:
    """Bytes each second that all cores read together, by the quickest of two plain ways."""
    matrix = torch.ones(16_384, 8_192)  # 537 MB, far more than any cache
    vector = torch.ones(8_192)
    best = math.inf
    for _ in range(7):
        reads: list[Callable[[], object]] = [matrix.sum, partial(torch.mv, matrix, vector)]
        for work in reads:
            start = time.perf_counter()
            work()
            best = min(best, time.perf_counter() - start)
    return matrix.numel() * 4 / best


def limits(path: Path, rounds: int, sizes: list[int]) -> str:
    """What a step takes, and where it goes."""
    from clearhead.generation.engine import Engine
    from clearhead.generation.engine_runner import EngineRunner
    from clearhead.models.config import ModelConfig
    from clearhead.models.decoder import Decoder

    mine = Clearhead(path)
    config = mine.loaded.config
    speed = bandwidth()
    small = ModelConfig(kind="decoder", vocab=32, context=64, model=32, layers=1, heads=1,
                        feed_forward=32)  # fmt: skip
    empty = EngineRunner(Engine(Decoder(small).eval()))
    empty.extend([[1]])

    def call() -> float:
        start = time.perf_counter()
        for _ in range(TOKENS):
            empty.extend([[1]])
        took = time.perf_counter() - start
        empty.crop(1)
        return took / TOKENS

    rows = []
    for size in sizes:
        took = turns({"step": mine.decode([some_ids(size)]), "call": call}, rounds)
        width = (config.kv_heads or config.heads) * config.head_width
        cache = size * width * 2 * 2 * config.layers
        weights = mine.engine.weight_bytes
        ideal = (weights + cache) / speed
        rest = took["step"] - ideal - took["call"]
        rows.append(
            [
                f"{size:,}", seconds(took["step"]), megabytes(weights), megabytes(cache),
                f"{(weights + cache) / took['step'] / 1e9:.1f} GB/s",
                f"{ideal / took['step']:.0%}", seconds(took["call"]), seconds(max(rest, 0)),
            ]
        )  # fmt: skip
    head = [
        "tokens in the cache", "a step", "weights", "keys and values", "read at",
        f"of the limit ({speed / 1e9:.1f} GB/s)", "the call from Python", "waiting and computing",
    ]  # fmt: skip
    return table(head, rows)


def quality(path: Path, tokens: int) -> str:
    """Perplexity and greedy choice against the float32 model, on Python's own documentation."""
    mine = Clearhead(path)
    tokenizer, model = mine.loaded.tokenizer, mine.loaded.model
    assert tokenizer is not None
    topics = pydoc_data.topics.topics
    ids = tokenizer.encode("\n\n".join(topics[name] for name in sorted(topics)))[:tokens]
    losses: dict[str, float] = {"float32": 0.0, "engine": 0.0}
    same = count = 0
    for start in range(0, len(ids) - WINDOW + 1, WINDOW):
        window = ids[start : start + WINDOW]
        with torch.no_grad():
            exact: Tensor = model(torch.tensor([window]))[0]
        found = mine.new(mine.engine).extend_all(window)
        wanted = torch.tensor(window[1:])
        for name, logits in (("float32", exact), ("engine", found)):
            losses[name] += float(functional.cross_entropy(logits[:-1], wanted, reduction="sum"))
        same += int((exact.argmax(-1) == found.argmax(-1)).sum())
        count += WINDOW
    predicted = count - count // WINDOW
    float32, engine = (math.exp(losses[name] / predicted) for name in ("float32", "engine"))
    rows = [
        ["perplexity, float32 on torch", f"{float32:.4f}"],
        ["perplexity, engine", f"{engine:.4f} ({engine / float32 - 1:+.3%})"],
        ["greedy choice equal", f"{same / count:.2%}"],
    ]
    return table([f"{count:,} tokens of pydoc_data.topics", ""], rows)


def one_process(contestant: str, path: Path) -> None:
    """Runs alone in a process: load, a prompt of 512 tokens, 32 more, and the memory it took."""
    ids = some_ids(512)
    if contestant == "transformers":
        theirs = Transformers(path)
        with torch.no_grad():
            theirs.decode([ids])()
    elif contestant == "clearhead":
        Clearhead(path).decode([ids])()
    else:
        import clearhead as ch
        from clearhead.generation.engine import Engine
        from clearhead.generation.engine_runner import EngineRunner

        loaded = ch.load(path)
        engine = Engine(loaded.model, keep_float32=False)  # type: ignore[arg-type]
        gc.collect()
        runner = EngineRunner(engine)
        runner.extend([ids])
    status = Path("/proc/self/status").read_text().splitlines()
    found = {
        line.split(":")[0]: int(line.split()[1]) * 1024 for line in status if line.startswith("Vm")
    }
    print(json.dumps({"peak": found["VmHWM"], "resident": found["VmRSS"]}))


def memory(path: Path) -> str:
    rows = []
    names = {
        "clearhead": "clearhead", "clearhead-alone": "clearhead, no float32 kept",
        "transformers": "transformers",
    }  # fmt: skip
    for name, label in names.items():
        command = [sys.executable, __file__, "--one", name, "--path", str(path)]
        env = os.environ | {"TRANSFORMERS_VERBOSITY": "error", "HF_HUB_OFFLINE": "1"}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
        found = json.loads(done.stdout.splitlines()[-1])
        rows.append([label, megabytes(found["peak"]), megabytes(found["resident"])])
    llama = Llama(path, context=1024)
    llama.ask([some_ids(512)], 32, reuse=False)
    llama.end()
    rows.append(["llama.cpp", megabytes(llama.peak), "–"])
    return table(["load, 512 tokens, 16 more", "peak memory", "at the end"], rows)


def first_token(path: Path, rounds: int) -> str:
    """From the command to the first letter on the screen, everything cached."""
    command = [sys.executable, "-m", "clearhead", "generate", "Students opened their"]
    command += ["--model", str(path), "--max-tokens", "4", "--temperature", "0"]
    took = []
    for _ in range(rounds + 1):
        start = time.perf_counter()
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as run:
            assert run.stdout is not None
            seen = run.stdout.read(1)
            took.append(time.perf_counter() - start)
            run.stdout.read()
        if not seen:
            return table(["", ""], [["first token", "the command is missing"]])
    return table(
        ["from command to first token", ""], [["clearhead", seconds(statistics.median(took[1:]))]]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, shorter texts")
    parser.add_argument("--only", default="", help="parts, separated by commas")
    parser.add_argument("--publish", action="store_true", help="write docs/benchmarks.md")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        one_process(given.one, given.path)
        return
    from clearhead.checkpoints.load import resolve

    path = resolve("smollm2")
    path = next(path.glob("*.gguf")) if path.is_dir() else path
    quick = given.quick
    rounds = 3 if quick else ROUNDS
    sizes = [16, 1024] if quick else [16, 1024, 4096]
    works: dict[str, tuple[str, Callable[[], str]]] = {
        "decode": ("Decoding", lambda: decoding(path, rounds, sizes)),
        "prefill": ("Prompts", lambda: prefilling(path, rounds, [512] if quick else [512, 2048])),
        "limits": ("Where a step's time goes", lambda: limits(path, rounds, sizes)),
        "cache": ("What the cache buys", lambda: without_cache(path, rounds, sizes)),
        "first": ("First token", lambda: first_token(path, rounds)),
        "memory": ("Memory", lambda: memory(path)),
        "quality": ("Quality", lambda: quality(path, 2048 if quick else 20_480)),
    }
    wanted = given.only.split(",") if given.only else list(works)
    parts = [f"`python benchmarks/generation.py` on {machine()}. SmolLM2-135M, {path.name}."]
    for name in wanted:
        title, work = works[name]
        parts.append(f"**{title}**\n\n{work()}")
        print(parts[-1], end="\n\n", flush=True)
        gc.collect()
    if given.publish:
        publish("generation", "\n\n".join(parts))


if __name__ == "__main__":
    main()
