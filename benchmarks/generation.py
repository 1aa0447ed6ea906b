"""Generation against llama.cpp and transformers: ``python benchmarks/generation.py [--publish]``.

Alternating rounds, medians. The parts ``speeds``, ``processor``, ``batches``, ``memories``,
``avx2``, ``reading`` and ``agreement`` take seven GGUF files (``--files`` names some), the others
SmolLM2 in Q4_1.
``--only decode,prefill`` runs some of the parts; ``--publish`` writes each part's table into
docs/benchmarks.md as soon as it is there, and leaves the others alone.
"""

from __future__ import annotations

import argparse
import gc
import math
import pydoc_data.topics
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from generating.avx2 import avx2
from generating.contestants import TOKENS, Clearhead, Transformers, some_ids, turns
from generating.curve import draw_curve
from generating.files import FOLDER, LABELS, file_named, in_catalogue
from generating.peers import Llama
from generating.processes import bandwidth, first_token, first_use, large, memory, sharing
from generating.processor_time import processor_times
from generating.seven import agreements, batches, limits_of_files, memories, speeds
from measure import machine, megabytes, publish, seconds, table
from torch import Tensor
from torch.nn import functional

ROUNDS = 5
WINDOW = 512  # tokens of a text for quality
NAMES = ("clearhead", "llama.cpp", "transformers")
CURVE = Path(__file__).resolve().parents[1] / "docs" / "generation-cache.svg"


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
    return table(HEADER, rows)


def decoding_batch(path: Path, rounds: int) -> str:
    eight = [some_ids(16 + i)[:16] for i in range(8)]
    llama = Llama(path, context=128, rows=8)
    work = {
        "clearhead": Clearhead(path).decode(eight),
        "llama.cpp": llama.decode(eight),
        "transformers": Transformers(path).decode(eight),
    }
    found = row("16 tokens in the cache of each", turns(work, rounds), 8)
    llama.end()
    return table(HEADER, [found])


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


def without_cache(path: Path, rounds: int, sizes: list[int], keep: bool) -> str:
    """The same next token, with the past in the cache and with all of it computed again."""
    mine = Clearhead(path)
    rows, points = [], []
    for size in sizes:
        ids = some_ids(size)
        took = turns({"cached": mine.decode([ids]), "again": mine.prefill(ids)}, rounds)
        ratio = f"{took['again'] / took['cached']:.0f}×"
        rows.append([f"{size:,}", seconds(took["cached"]), seconds(took["again"]), ratio])
        points.append((size, took["cached"], took["again"]))
    if keep:
        CURVE.write_text(draw_curve(points), encoding="utf-8")
    return table(["tokens before", "a token with the cache", "without", "the cache buys"], rows)


def limits(path: Path, rounds: int, sizes: list[int]) -> str:
    """What a step takes, and where it goes."""
    from clearhead.engine.engine import Engine
    from clearhead.engine.runner import EngineRunner
    from clearhead.models.config import ModelConfig
    from clearhead.models.decoder import Decoder

    mine = Clearhead(path)
    config = mine.loaded.config
    speed = max(bandwidth(path) for _ in range(3))
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


def in_eight_bits(path: Path) -> Clearhead:
    """The model's weights off by 0.001 %, so that 4 bits do not hold them exactly: all take 8."""
    import clearhead as ch
    from clearhead.engine.engine import Engine

    found = Clearhead(path)
    found.loaded = ch.load(path, dtype=torch.float32)  # weights that can be changed
    assert isinstance(found.loaded.model, ch.Decoder)
    generator = torch.Generator().manual_seed(0)
    for parameter in found.loaded.model.parameters():
        parameter.mul_(1 + 1e-5 * torch.randn(parameter.shape, generator=generator))
    found.engine = Engine(found.loaded.model, keep_float32=False)
    return found


def quality(path: Path, tokens: int) -> str:
    """Perplexity and greedy choice against the float32 model, on Python's own documentation."""
    mine, eight = Clearhead(path), in_eight_bits(path)
    tokenizer, model = mine.loaded.tokenizer, mine.loaded.model
    assert tokenizer is not None
    ids = tokenizer.encode(_documentation())[:tokens]
    engines = {"the engine, with the file's 4 bits": mine, "the engine, all in 8 bits": eight}
    losses = dict.fromkeys(["float32 on torch", *engines], 0.0)
    same = dict.fromkeys(engines, 0)
    count = 0
    for start in range(0, len(ids) - WINDOW + 1, WINDOW):
        window = ids[start : start + WINDOW]
        with torch.no_grad():
            exact: Tensor = model(torch.tensor([window]))[0]
        losses["float32 on torch"] += loss(exact, window)
        for name, contestant in engines.items():
            found = contestant.new(contestant.engine).extend_all(window)
            losses[name] += loss(found, window)
            same[name] += int((exact.argmax(-1) == found.argmax(-1)).sum())
        count += WINDOW
    predicted = count - count // WINDOW
    found_of = {name: math.exp(total / predicted) for name, total in losses.items()}
    base = found_of.pop("float32 on torch")
    rows = [["float32 on torch", f"{base:.4f}", "–", "–"]]
    for name, found_perplexity in found_of.items():
        off, share = f"{found_perplexity / base - 1:+.3%}", f"{same[name] / count:.2%}"
        rows.append([name, f"{found_perplexity:.4f}", off, share])
    head = [f"{count:,} tokens of pydoc_data.topics", "perplexity", "off by", "greedy choice equal"]
    return table(head, rows)


def _documentation() -> str:
    """A text that every Python carries."""
    topics = pydoc_data.topics.topics
    return "\n\n".join(topics[name] for name in sorted(topics))


def loss(logits: Tensor, ids: list[int]) -> float:
    """Summed over the tokens that follow the first."""
    return float(functional.cross_entropy(logits[:-1], torch.tensor(ids[1:]), reduction="sum"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, shorter texts")
    parser.add_argument("--only", default="", help="parts, separated by commas")
    parser.add_argument("--files", default="", help=f"of {', '.join(LABELS)}")
    parser.add_argument("--publish", action="store_true", help="write docs/benchmarks.md")
    given = parser.parse_args()
    names = given.files.split(",") if given.files else list(LABELS)
    works = files_parts(names, given.quick)
    works |= parts(in_catalogue("smollm2"), given.quick, given.publish)
    for name in given.only.split(",") if given.only else works:
        if name not in works:
            raise SystemExit(f"there is no part {name!r}: {', '.join(works)}")
        title, work = works[name]
        source = f"`python benchmarks/generation.py --only {name}` on {machine()}."
        text = f"**{title}**\n\n{work()}\n\n{source}"
        print(text, end="\n\n", flush=True)
        if given.publish:
            publish(f"generation {name}", text)
        gc.collect()


def files_parts(names: list[str], quick: bool) -> dict[str, tuple[str, Callable[[], str]]]:
    """What is measured of several files."""
    rounds = 3 if quick else ROUNDS
    return {
        "speeds": ("Seven files", lambda: speeds(names, rounds)),
        "processor": ("By processor time", lambda: processor_times(names, rounds)),
        "batches": ("A batch of 8", lambda: batches(names, rounds)),
        "memories": ("Peak memory", lambda: memories(names)),
        "avx2": ("With AVX2 alone", lambda: avx2(names, rounds)),
        "reading": ("How fast weights are read", lambda: limits_of_files(names, rounds, bandwidth)),
        "agreement": ("Agreement", lambda: agreements(names, _documentation())),
    }


def starters(path: Path) -> dict[str, Path]:
    """The files whose first token is timed: a small one and a larger one."""
    return {"SmolLM2 Q4_1": path, LABELS["1.1B-Q4_K"]: file_named("1.1B-Q4_K")}


def parts(path: Path, quick: bool, keep: bool) -> dict[str, tuple[str, Callable[[], str]]]:
    """What can be measured: title and work."""
    rounds = 3 if quick else ROUNDS
    sizes = [16, 1024] if quick else [16, 1024, 4096]
    prompts = [512] if quick else [512, 2048]
    curve = [16, 64, 256, 1024] if quick else [16, 64, 256, 1024, 2048, 4096]
    return {
        "decode": ("Decoding", lambda: decoding(path, rounds, sizes)),
        "batch": ("Decoding a batch of 8", lambda: decoding_batch(path, rounds)),
        "prefill": ("Prompts", lambda: prefilling(path, rounds, prompts)),
        "limits": ("Where a step's time goes", lambda: limits(path, rounds, sizes)),
        "cache": ("What the cache buys", lambda: without_cache(path, min(rounds, 5), curve, keep)),
        "first": ("First token", lambda: first_token(starters(path), min(rounds, 5))),
        "large": ("A model of 7 billion parameters", lambda: large(FOLDER / "random-7B.gguf")),
        "use": ("First use", lambda: first_use(path)),
        "sharing": ("Two processes on the same cores", lambda: sharing(path)),
        "memory": ("Memory", lambda: memory(path)),
        "quality": ("Quality", lambda: quality(path, 2048 if quick else 20_480)),
    }


if __name__ == "__main__":
    main()
