"""What watching and looking cost: ``python benchmarks/watching.py [--only PART] [--publish]``.

Watching: a forward of SmolLM2 (the GGUF that clearhead fetches) in transformers and in clearhead,
plain and watched, against the ways to the same weights that keep all of them: transformers' eager
attention with ``output_attentions=True``, and TransformerLens' ``run_with_cache`` (attention
patterns only) in an environment of its own, made on first use. Time is the median of rounds that
take turns (fifteen at 512 tokens, one at 8,192); memory is the highest above what was held before,
in a run of its own.

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
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

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
ROUNDS = {512: 15, 2048: 5, 8192: 2}  # tokens: rounds
ROUNDS_OF_EAGER = 3  # several times slower
WIDTH = 64
LONGEST_EAGER = 2048  # at 8,192 tokens all weights of SmolLM2 take 72 GB
_FLASH = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default


ABOUT = {
    "forward": "SmolLM2, batch 1, float32.",
    "heads": f"One causal head of random numbers, width {WIDTH}.",
}


class Runs:
    """Some work, done several times: how long it took each time, and the memory that it needed."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.work = work
        self.seconds: list[float] = []
        self.peak = 0  # bytes above what was held before
        self.kept: int | None = None  # bytes of what was seen

    def measure_memory(self) -> Any:
        """One run, slowed down by looking; it is also the one that warms up. What it gave."""
        _give_back()
        gave: list[Any] = []
        self.peak = memory_of(lambda: gave.append(self.work()))
        return gave[0]

    def measure_time(self) -> None:
        """One more run; the memory of earlier ones is there to be used again."""
        gc.collect()
        start = time.perf_counter()
        given = self.work()
        self.seconds.append(time.perf_counter() - start)
        del given

    @property
    def usual(self) -> float:
        """The median time."""
        return statistics.median(self.seconds)


def _give_back() -> None:
    """What earlier runs freed goes back to the system (glibc), or later ones would hide in it."""
    gc.collect()
    library = ctypes.CDLL(None)
    if hasattr(library, "malloc_trim"):
        library.malloc_trim(0)


def in_turns(contestants: Mapping[str, Callable[[], object]], tokens: int) -> dict[str, Runs]:
    """Memory first, each alone; then the times, in rounds that take turns."""
    runs = {name: Runs(work) for name, work in contestants.items()}
    for name, one in runs.items():
        gave = one.measure_memory()
        if name.endswith("watched"):
            one.kept = gave.nbytes
        del gave  # the next one must not run beside it
    for number in range(ROUNDS[tokens]):
        for name, one in runs.items():
            if "eager" not in name or number < ROUNDS_OF_EAGER:
                one.measure_time()
    return runs


def rows_of(tokens: int, runs: Mapping[str, Runs]) -> list[list[str]]:
    """One row each; a plain forward is named before the comma."""
    rows = []
    for name, one in runs.items():
        ratio = one.usual / runs[name.partition(",")[0]].usual
        kept = "" if one.kept is None else megabytes(one.kept)
        peak = megabytes(one.peak)
        rows.append([f"{tokens:,}", name, seconds(one.usual), f"{ratio:.2f}×", peak, kept])
    return rows


EAGER = "transformers, eager with output_attentions"
HEADER = ["tokens", "", "time", "of the plain forward", "peak memory", "kept"]


def watched(model: Any, forward: Callable[[], object]) -> Any:
    from clearhead.trace import watch

    with watch(model) as seen:
        forward()
    return seen


def forwards(path: Path, lengths: list[int]) -> tuple[list[list[str]], list[str]]:
    """transformers (sdpa; eager with all weights) and our own model, plain and watched, in turns;
    and, said in words, how eager compares."""
    import transformers

    import clearhead as ch

    transformers.logging.set_verbosity_error()

    def load(attention: str) -> Any:
        return transformers.AutoModelForCausalLM.from_pretrained(
            str(path.parent), gguf_file=path.name, dtype=torch.float32,
            attn_implementation=attention,
        ).eval()  # fmt: skip

    model, eager, ours = load("sdpa"), load("eager"), ch.load(path).model
    rows, said = [], []
    for length in lengths:
        ids = torch.randint(5, 40_000, (1, length), generator=torch.Generator().manual_seed(0))
        theirs = partial(model, ids, logits_to_keep=1, use_cache=False)
        own = partial(ours, ids, last_only=True)
        work: dict[str, Callable[[], object]] = {
            "transformers": theirs,
            "transformers, watched": partial(watched, model, theirs),
            "clearhead": own,
            "clearhead, watched": partial(watched, ours, own),
        }
        if length <= LONGEST_EAGER:
            work[EAGER] = partial(
                eager, ids, logits_to_keep=1, use_cache=False, output_attentions=True
            )
        runs = in_turns(work, length)
        rows += rows_of(length, runs)
        print(table(HEADER, rows[-len(work) :]), flush=True)
        if EAGER in runs:
            said.append(_against_eager(length, runs))
    return rows, said


def _against_eager(tokens: int, runs: Mapping[str, Runs]) -> str:
    parts = [
        f"{runs[EAGER].usual / runs[name].usual:.1f} times {name}"
        f" ({runs[EAGER].peak / runs[name].peak:.0f} times its memory)"
        for name in ("transformers, watched", "clearhead, watched")
    ]
    return f"At {tokens:,} tokens eager takes {', '.join(parts)}."


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


def lens_process(length: int, folder: Path) -> None:
    """Runs alone, in TransformerLens' environment."""
    bridge: Any = importlib.import_module("transformer_lens.model_bridge").TransformerBridge
    model = bridge.boot_transformers(str(folder), device="cpu")
    ids = torch.randint(5, 40_000, (1, length), generator=torch.Generator().manual_seed(0))

    def is_pattern(name: str) -> bool:
        return name.endswith("hook_pattern")

    plain = Runs(partial(model, ids, return_type=None))
    cached = Runs(partial(model.run_with_cache, ids, return_type=None, names_filter=is_pattern))
    with torch.no_grad():
        model(ids[:, :64], return_type=None)
        for run in (plain, cached):
            gave = run.measure_memory()
            run.measure_time()
    patterns = [value for name, value in gave[1].items() if is_pattern(name)]
    assert len(patterns) == 30 and patterns[0].shape[-2:] == (length, length)
    print(json.dumps([[run.seconds[0], run.peak] for run in (plain, cached)]))


def in_transformer_lens(path: Path, lengths: list[int]) -> list[list[str]]:
    """TransformerLens, in processes of its own."""
    python, rows = lens_environment(), []
    folder = lens_model(path)
    for length in lengths:
        if length > LONGEST_EAGER:
            continue
        command = [str(python), __file__, "--lens", str(length), "--folder", str(folder)]
        env = os.environ | {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
        if done.returncode != 0:
            raise SystemExit(f"TransformerLens failed:\n{done.stderr[-2000:]}")
        found = json.loads(done.stdout.splitlines()[-1])
        names = ("TransformerLens", "TransformerLens, run_with_cache")
        for name, (took, peak) in zip(names, found, strict=True):
            ratio = f"{took / found[0][0]:.2f}×"
            rows.append([f"{length:,}", name, seconds(took), ratio, megabytes(peak), ""])
        print(table(HEADER, rows[-2:]), flush=True)
    return rows


def synthetic_head(length: int) -> tuple[Any, Callable[[], object]]:
    """A causal head as watch would have kept it, and its flash forward."""
    from clearhead.trace import LayerFacts, LayerRecord, Seen
    from clearhead.trace.row_rules import Piece, RowMask

    torch.manual_seed(0)
    query, key, value = torch.randn(3, 1, 1, length, WIDTH)
    flash = partial(_FLASH, query, key, value, 0.0, True)
    facts = LayerFacts(
        "L0", "", "self", True, 1, 1, WIDTH, WIDTH, WIDTH**-0.5, None, torch.float32, ""
    )
    low = torch.zeros(1, length, dtype=torch.long)
    mask = RowMask(low, torch.arange(1, length + 1)[None])
    record = LayerRecord(facts, query, key, flash()[1], pieces=[Piece(length, length, mask)])
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


def watching(lengths: list[int]) -> str:
    from clearhead.checkpoints.store import ModelStore

    path = ModelStore().pull("smollm2")
    with torch.no_grad():
        rows, said = forwards(path, lengths)
        rows += in_transformer_lens(path, lengths)
    note = (
        f"{' '.join(said)} "
        f"All weights do not fit beyond {LONGEST_EAGER:,} tokens (72 GB at 8,192). TransformerLens "
        "keeps attention patterns only (`names_filter`)."
    )
    return f"{table(HEADER, rows)}\n\n{note}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="short lengths only")
    parser.add_argument("--only", choices=["forward", "heads"], help="one of the two parts")
    parser.add_argument("--publish", action="store_true", help="write docs/benchmarks.md")
    parser.add_argument("--lens", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.lens:
        lens_process(given.lens, given.folder)
        return
    lengths = [512] if given.quick else [512, 2048, 8192]
    heads = [8192] if given.quick else [8192, 32768, 131072]
    parts: dict[str, Callable[[], str]] = {
        "forward": partial(watching, lengths),
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
