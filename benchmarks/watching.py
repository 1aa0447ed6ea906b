"""What watching and looking cost: ``python benchmarks/watching.py [--only PART] [--publish]``.

Watching: a forward of SmolLM2 (the GGUF that clearhead fetches) in transformers and in clearhead,
plain and watched, against the ways to the same weights that keep all of them: transformers' eager
attention with ``output_attentions=True``, and TransformerLens' ``run_with_cache`` (attention
patterns only) in an environment of its own, made on first use. Each model has a process to itself,
in which plain and watched take turns, and up to 2,048 tokens several of them, one model after the
other: what memory a process finds decides over as much as a quarter of its time. Times and ratios
are the medians of all rounds; memory is the highest above what was held before, in a run of its
own, the median of processes.

Generation: a small Llama of transformers with random weights writes 60 tokens after a prompt of 16,
plain and watched, call by call in turns, and reads 256 tokens in one forward. Steps take so little
time that the ratio of each pair of calls is what counts.

Ratios: the same forwards of 512 and 2,048 tokens, plain and watched in turns in one process of each
model, without memory, eager and TransformerLens: a few minutes instead of 48.

Looking: one causal head of random numbers, width 64: a row, a tile and the whole map, against
torch's flash forward of the same head.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import importlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from measure import (
    ROOT,
    machine,
    medians,
    megabytes,
    memory_of,
    peer_environment,
    publish,
    seconds,
    table,
)

LENS_FOLDER = ROOT / "build" / "bench-transformer-lens"
ROUNDS = {512: 5, 2048: 3, 8192: 5}  # tokens: rounds in a process
PROCESSES = {512: 3, 2048: 5, 8192: 1}  # tokens: processes of a model
WIDTH = 64
LONGEST_EAGER = 2048  # at 8,192 tokens all weights of SmolLM2 take 72 GB
_FLASH = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default


ABOUT = {
    "forward": "SmolLM2, batch 1, float32.",
    "ratios": "SmolLM2, batch 1, float32; plain and watched in turns.",
    "generation": "Llama of transformers, random weights, batch 1, float32.",
    "heads": f"One causal head of random numbers, width {WIDTH}.",
}


class Runs:
    """Some work, done several times: how long it took each time, and the memory that it needed."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.work = work
        self.seconds: list[float] = []
        self.peak = 0  # bytes above what was held before
        self.kept: int | None = None  # bytes of what was seen

    def measure_memory(self) -> None:
        """One run, slowed down by looking; it is also the one that warms up."""
        _give_back()
        gave: list[Any] = []
        self.peak = memory_of(lambda: gave.append(self.work()))
        if hasattr(gave[0], "verify"):  # a trace
            self.kept = gave[0].nbytes

    def measure_time(self) -> None:
        """One more run; the memory of earlier ones is there to be used again."""
        gc.collect()
        start = time.perf_counter()
        given = self.work()
        self.seconds.append(time.perf_counter() - start)
        del given


def _give_back() -> None:
    """What earlier runs freed goes back to the system (glibc), or later ones would hide in it."""
    gc.collect()
    library = ctypes.CDLL(None)
    if hasattr(library, "malloc_trim"):
        library.malloc_trim(0)


class Measured(NamedTuple):
    """What a process found of one contestant, or several processes did."""

    seconds: list[float]
    peak: float
    kept: int | None

    @property
    def usual(self) -> float:
        return statistics.median(self.seconds)

    def ratio(self, plain: Measured) -> float:
        """Of each round, the median; or of the usual times where the rounds were not the same."""
        if len(self.seconds) == len(plain.seconds):
            return statistics.median(
                mine / theirs for mine, theirs in zip(self.seconds, plain.seconds, strict=True)
            )
        return self.usual / plain.usual

    @staticmethod
    def joined(parts: list[Measured]) -> Measured:
        """What several processes found, as one."""
        rounds = [taken for part in parts for taken in part.seconds]
        return Measured(rounds, statistics.median(part.peak for part in parts), parts[0].kept)


Works = dict[str, Callable[[], object]]
EAGER = "transformers, eager with output_attentions"
HEADER = ["tokens", "", "time", "of the plain forward", "peak memory", "kept"]


def watched(model: Any, forward: Callable[[], object]) -> Any:
    from clearhead.trace import watch

    with watch(model) as seen:
        forward()
    return seen


def transformers_model(path: Path, attention: str) -> Any:
    import transformers

    transformers.logging.set_verbosity_error()
    return transformers.AutoModelForCausalLM.from_pretrained(
        str(path.parent), gguf_file=path.name, dtype=torch.float32, attn_implementation=attention
    ).eval()


def of_transformers(path: Path, ids: torch.Tensor) -> Works:
    model = transformers_model(path, "sdpa")
    forward = partial(model, ids, logits_to_keep=1, use_cache=False)
    return {"transformers": forward, "transformers, watched": partial(watched, model, forward)}


def of_clearhead(path: Path, ids: torch.Tensor) -> Works:
    import clearhead as ch

    model = ch.load(path).model
    forward = partial(model, ids, last_only=True)
    return {"clearhead": forward, "clearhead, watched": partial(watched, model, forward)}


def of_eager(path: Path, ids: torch.Tensor) -> Works:
    model = transformers_model(path, "eager")
    return {EAGER: partial(model, ids, logits_to_keep=1, use_cache=False, output_attentions=True)}


def of_lens(path: Path, ids: torch.Tensor) -> Works:
    """In TransformerLens' environment."""
    bridge: Any = importlib.import_module("transformer_lens.model_bridge").TransformerBridge
    model = bridge.boot_transformers(str(path), device="cpu")

    def is_pattern(name: str) -> bool:
        return name.endswith("hook_pattern")

    def with_cache() -> None:
        cache = model.run_with_cache(ids, return_type=None, names_filter=is_pattern)[1]
        patterns = [value for name, value in cache.items() if is_pattern(name)]
        assert len(patterns) == 30 and patterns[0].shape[-2:] == (ids.shape[1], ids.shape[1])

    return {
        "TransformerLens": partial(model, ids, return_type=None),
        "TransformerLens, run_with_cache": with_cache,
    }


MODELS: dict[str, Callable[[Path, torch.Tensor], Works]] = {
    "transformers": of_transformers,
    "clearhead": of_clearhead,
    "eager": of_eager,
    "lens": of_lens,
}
KEEP_ALL = ("eager", "lens")  # all weights of all heads


def model_process(name: str, path: Path, length: int, rounds: int | None) -> None:
    """Runs alone: memory first, each contestant by itself; then the times, in turns.

    With ``rounds``, so many of them and no memory.
    """
    ids = torch.randint(5, 40_000, (1, length), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        runs = {title: Runs(work) for title, work in MODELS[name](path, ids).items()}
        order = list(runs.values())
        for one in order:
            one.work() if rounds else one.measure_memory()
        for _ in range(rounds or ROUNDS[length]):
            for one in order:
                one.measure_time()
            order.reverse()  # a machine that slows down by and by hits both
    found = {title: Measured(one.seconds, one.peak, one.kept) for title, one in runs.items()}
    print(json.dumps(found))


def measured(name: str, path: Path, length: int, rounds: int = 0) -> dict[str, Measured]:
    """A model in a process of its own: beside another one it would find other memory."""
    python = str(lens_environment()) if name == "lens" else sys.executable
    place = lens_model(path) if name == "lens" else path
    command = [python, __file__, "--model", name, "--path", str(place), "--length", str(length)]
    command += ["--rounds", str(rounds)]
    env = os.environ | {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    if done.returncode != 0:
        raise SystemExit(f"{name} failed at {length:,} tokens:\n{done.stderr[-2000:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    return {title: Measured(*values) for title, values in found.items()}


def lens_environment() -> Path:
    """Python with TransformerLens."""
    return peer_environment("transformer-lens", ["transformer-lens"])


def lens_model(path: Path) -> Path:
    """SmolLM2 as a folder that TransformerLens can boot from, which GGUF files are not."""
    import clearhead as ch

    folder = LENS_FOLDER / "smollm2"
    if not folder.exists():
        loaded = ch.load(path)
        ch.save(loaded.model, folder, loaded.tokenizer)
    return folder


def watching(lengths: list[int]) -> str:
    """All models at all lengths; and, said in words, how eager compares."""
    from clearhead.checkpoints.store.model_store import ModelStore

    path = ModelStore().pull("smollm2")
    rows, said = [], []
    for length in lengths:
        names = [name for name in MODELS if length <= LONGEST_EAGER or name not in KEEP_ALL]
        processes: dict[str, list[Measured]] = {}
        for _ in range(PROCESSES[length]):
            for name in names:
                for title, one in measured(name, path, length).items():
                    processes.setdefault(title, []).append(one)
                    print(f"  {length:,} tokens: {title} {seconds(one.usual)}", flush=True)
        found = {title: Measured.joined(parts) for title, parts in processes.items()}
        rows += rows_of(length, found)
        print(table(HEADER, rows[-len(found) :]), flush=True)
        if EAGER in found:
            said.append(_against_eager(length, processes))
    note = (
        f"{' '.join(said)} "
        f"All weights do not fit beyond {LONGEST_EAGER:,} tokens (72 GB at 8,192). TransformerLens "
        "keeps attention patterns only (`names_filter`)."
    )
    return f"{table(HEADER, rows)}\n\n{note}"


def ratios(rounds: dict[int, int]) -> str:
    """Plain and watched forwards in turns: nothing but how their times compare."""
    from clearhead.checkpoints.store.model_store import ModelStore

    path, rows = ModelStore().pull("smollm2"), []
    for length, count in rounds.items():
        for name in ("transformers", "clearhead"):
            found = measured(name, path, length, count)
            plain, seen = found[name], found[f"{name}, watched"]
            pairs = [b / a for a, b in zip(plain.seconds, seen.seconds, strict=True)]
            spread = f"{min(pairs):.2f}–{max(pairs):.2f}"
            times = [seconds(plain.usual), seconds(seen.usual)]
            rows.append([f"{length:,}", name, *times, f"{seen.ratio(plain):.2f}×", spread])
            print("  " + ", ".join(rows[-1]), flush=True)
    return table(["tokens", "", "plain", "watched", "ratio", "in the rounds"], rows)


def rows_of(tokens: int, found: Mapping[str, Measured]) -> list[list[str]]:
    """One row each; a plain forward is named before the comma."""
    rows = []
    for name, one in found.items():
        ratio = one.ratio(found[name.partition(",")[0]])
        kept = "" if one.kept is None else megabytes(one.kept)
        peak = megabytes(one.peak)
        rows.append([f"{tokens:,}", name, seconds(one.usual), f"{ratio:.2f}×", peak, kept])
    return rows


def _against_eager(tokens: int, processes: Mapping[str, list[Measured]]) -> str:
    """Each process of eager against the one of a watched model just before it."""
    eager, parts = processes[EAGER], []
    for name in ("transformers, watched", "clearhead, watched"):
        pairs = list(zip(eager, processes[name], strict=True))
        times = sorted(slow.usual / quick.usual for slow, quick in pairs)
        memory = statistics.median(slow.peak / quick.peak for slow, quick in pairs)
        parts.append(
            f"{statistics.median(times):.1f} times as long as {name} "
            f"({times[0]:.1f}–{times[-1]:.1f} in {len(pairs)} processes each; "
            f"{memory:.0f} times its memory)"
        )
    return f"At {tokens:,} tokens eager takes {' and '.join(parts)}."


SHAPES = {  # layers, width, heads, heads of the keys
    "6 layers, width 256": (6, 256, 8, 4),
    "12 layers, width 576": (12, 576, 9, 3),
}
PROMPT, NEW, READ = 16, 60, 256  # tokens
PAIRS = 15  # of a plain and a watched call


def small_llama(shape: tuple[int, int, int, int], attention: str) -> Any:
    import transformers

    transformers.logging.set_verbosity_error()
    layers, width, heads, kv_heads = shape
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=8000, hidden_size=width, intermediate_size=width * 8 // 3,
        num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=kv_heads,
        attn_implementation=attention,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config).eval()


def steps_of(model: Any) -> Works:
    """What is measured of a model: many steps, and one forward."""
    torch.manual_seed(1)
    prompt, text = torch.randint(3, 8000, (1, PROMPT)), torch.randint(3, 8000, (1, READ))
    once = {"max_new_tokens": NEW, "min_new_tokens": NEW, "do_sample": False, "pad_token_id": 0}
    return {
        f"{NEW} tokens written": partial(model.generate, prompt, **once),
        f"{READ} tokens read": partial(model, text, use_cache=False),
    }


def generating(pairs: int) -> str:
    """Plain and watched in turns; the ratio is the median of the pairs' ratios."""
    rows = []
    for title, shape in SHAPES.items():
        for attention in ("sdpa", "eager"):
            model = small_llama(shape, attention)
            for what, work in steps_of(model).items():
                plain, seen = Runs(work), Runs(partial(watched, model, work))
                with torch.no_grad():
                    for one in (plain, seen):
                        one.work()  # warm
                    for _ in range(pairs):
                        plain.measure_time()
                        seen.measure_time()
                taken = [Measured(one.seconds, 0, None) for one in (plain, seen)]
                ratios = sorted(b / a for a, b in zip(plain.seconds, seen.seconds, strict=True))
                quarter = len(ratios) // 4
                spread = f"{ratios[quarter]:.2f}–{ratios[-1 - quarter]:.2f}"
                rows.append(
                    [
                        title, attention, what, *(seconds(one.usual) for one in taken),
                        f"{taken[1].ratio(taken[0]):.2f}×", spread,
                        f"{min(seen.seconds) / min(plain.seconds):.2f}×",
                    ]
                )  # fmt: skip
                print("  " + ", ".join(rows[-1]), flush=True)
    header = [
        "Llama", "attention", "", "plain", "watched", "ratio", "middle half", "of the quickest",
    ]  # fmt: skip
    return table(header, rows)


def synthetic_head(length: int) -> tuple[Any, Callable[[], object]]:
    """A causal head as watch would have kept it, and its flash forward."""
    from clearhead.trace import LayerFacts, LayerRecord, Seen
    from clearhead.trace.row_rules import RowMask, RowRules

    torch.manual_seed(0)
    query, key, value = torch.randn(3, 1, 1, length, WIDTH)
    flash = partial(_FLASH, query, key, value, 0.0, True)
    facts = LayerFacts(
        "L0", "", "self", True, 1, 1, WIDTH, WIDTH, WIDTH**-0.5, None, torch.float32, ""
    )
    low = torch.zeros(1, length, dtype=torch.long)
    mask = RowMask(low, torch.arange(1, length + 1)[None])
    record = LayerRecord(facts, query, key, flash()[1], pieces=[RowRules(length, length, mask)])
    return Seen([record])["L0H0"], flash


def looking(lengths: list[int]) -> str:
    rows = []
    for length in lengths:
        head, flash = synthetic_head(length)
        middle = range(length // 2, length // 2 + 256)
        rounds = 5 if length < 100_000 else 1
        took = medians(
            {
                "flash": flash,
                "row": partial(head.row, -1),
                "tile": partial(head.weights, middle, range(256)),
                "map": partial(head.map, 1024, limit=None),
                "sums": partial(head.map, 1024, "sum", limit=None),
            },
            rounds,
        )
        memory = memory_of(partial(head.map, 1024, limit=None))
        rows.append(
            [
                f"{length:,}", seconds(took["row"]), seconds(took["tile"]), seconds(took["map"]),
                seconds(took["sums"]), seconds(took["flash"]),
                f"{took['map'] / took['flash']:.2f}×", megabytes(memory),
            ]
        )  # fmt: skip
    header = [
        "tokens", "row", "256×256 tile", "map(1024), max", "map(1024), sum", "flash forward",
        "map / flash", "peak memory of the map",
    ]  # fmt: skip
    return table(header, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="short lengths only")
    parser.add_argument("--only", choices=list(ABOUT), help="one of the parts")
    parser.add_argument("--publish", action="store_true", help="write docs/benchmarks.md")
    parser.add_argument("--model", choices=list(MODELS), help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--length", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=0, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.model:
        model_process(given.model, given.path, given.length, given.rounds)
        return
    lengths = [512] if given.quick else [512, 2048, 8192]
    heads = [8192] if given.quick else [8192, 32768, 131072]
    parts: dict[str, Callable[[], str]] = {
        "forward": partial(watching, lengths),
        "ratios": partial(ratios, {512: 5} if given.quick else {512: 9, 2048: 5}),
        "generation": partial(generating, 5 if given.quick else PAIRS),
        "heads": partial(looking, heads),
    }
    for name, part in parts.items():
        if given.only in (None, name):
            command = f"`python benchmarks/watching.py --only {name}` on {machine()}."
            text = f"{command} {ABOUT[name]}\n\n{part()}"
            print(text, end="\n\n", flush=True)
            if given.publish:
                publish(f"watching {name}", text)


if __name__ == "__main__":
    main()
