"""Who takes part in benchmarks/generation.py, and how they take turns.

Each contestant's ``decode`` and ``prefill`` return a round: a function that says how many seconds
it took. llama.cpp and ik_llama.cpp are in peers.py.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import torch

TOKENS = 32  # that are decoded in a round


class Clearhead:
    """Our side: the engine."""

    def __init__(self, path: Path, *, keep_float32: bool = True) -> None:
        import clearhead as ch
        from clearhead.engine.engine import Engine
        from clearhead.engine.runner import EngineRunner

        self.loaded = ch.load(path)
        assert isinstance(self.loaded.model, ch.Decoder)
        self.engine = Engine(self.loaded.model, keep_float32=keep_float32)
        self.new = EngineRunner

    def cache_bytes(self, tokens: int) -> int:
        """Bytes of keys and values, in half precision, of so many tokens."""
        sizes = self.engine.sizes
        width = sizes["kv_heads"] * (sizes["key_width"] + sizes["value_width"])
        return 2 * tokens * width * sizes["layers"]

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
        os.environ["TQDM_DISABLE"] = "1"  # the conversion's own bar
        import transformers

        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
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


def turns(work: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """The median of what each says it took; they take turns."""
    for each in work.values():
        each()
    took: dict[str, list[float]] = {name: [] for name in work}
    order = list(work)
    for _ in range(rounds):
        for name in order:
            took[name].append(work[name]())
        order.append(order.pop(0))  # threads that still spin disturb whoever comes next
    return {name: statistics.median(found) for name, found in took.items()}


def some_ids(count: int) -> list[int]:
    generator = torch.Generator().manual_seed(count)
    return torch.randint(5, 40_000, (count,), generator=generator).tolist()
