"""Attention against torch: ``python benchmarks/attention.py [--quick] [--publish]``.

One run, alternating turns, medians. 8 heads of width 64, batch 1, float32 unless said otherwise.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from measure import (
    call_by_call,
    machine,
    medians,
    megabytes,
    peak_memory,
    publish,
    publish_part,
    seconds,
    table,
)
from torch import Tensor, nn
from torch.nn import functional

import clearhead as ch

HEADS, WIDTH, SHORT = 8, 64, 256
PROCESSES = 5  # for short texts
PLAIN = 2048  # tokens; beyond, all weights are too many
SDPA = functional.scaled_dot_product_attention


def tensors(
    length: int, *, grad: bool = False, value_dim: int = WIDTH
) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(0)

    def made(width: int) -> Tensor:
        return torch.randn(1, HEADS, length, width, requires_grad=grad)

    return made(WIDTH), made(WIDTH), made(value_dim)


def backward(work: Callable[..., Tensor], inputs: tuple[Tensor, ...], **options: Any) -> None:
    output = work(*inputs, **options)
    torch.autograd.grad(output, inputs, torch.ones_like(output))


def plain(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return ch.attention_steps(query, key, value).output


def one_fused(length: int, *, grad: bool) -> dict[str, float]:
    """Seconds of each where SDPA's fused kernel applies: no mask, and causal."""
    inputs = tensors(length, grad=grad)
    contestants: dict[str, Callable[[], object]] = {}
    for causal in (False, True):
        tag = " causal" if causal else ""
        if grad:
            contestants[f"sdpa{tag}"] = partial(backward, SDPA, inputs, is_causal=causal)
            contestants[f"ours{tag}"] = partial(backward, ch.attention, inputs, causal=causal)
        else:
            contestants[f"sdpa{tag}"] = partial(SDPA, *inputs, is_causal=causal)
            contestants[f"ours{tag}"] = partial(ch.attention, *inputs, causal=causal)
    if length <= PLAIN:
        contestants["plain"] = partial(backward, plain, inputs) if grad else partial(plain, *inputs)
    with torch.set_grad_enabled(grad):
        return medians(contestants, rounds=5 if length < 4096 else 9 if length < 8192 else 7)


class Runs:
    """Several processes that time the same contestants, of which the medians count.

    Where a process's memory happens to lie moves 128 tokens by a fifth, SDPA's and ours apart.
    """

    def __init__(self, part: str, length: int, processes: int) -> None:
        command = ["--times", part, "--length", str(length)]
        self.runs: list[dict[str, float]] = [
            json.loads(in_process(command)) for _ in range(processes)
        ]

    def time(self, name: str) -> float:
        return statistics.median(took[name] for took in self.runs)

    def ratio(self, above: str, below: str) -> float:
        return statistics.median(self.ratios(above, below))

    def ratios(self, above: str, below: str) -> list[float]:
        return [took[above] / took[below] for took in self.runs]

    def range(self, above: str, below: str) -> str:
        ratios = self.ratios(above, below)
        return f"{min(ratios):.2f}–{max(ratios):.2f}"


def fused(lengths: list[int], *, grad: bool) -> str:
    """Each length in fresh processes, the short ones in several."""
    rows = []
    for length in lengths:
        several = PROCESSES if length <= 1024 else 1
        runs = Runs("backward" if grad else "forward", length, several)
        cells = [f"{length:,}"]
        for tag in ("", " causal"):
            ratio = f"{runs.ratio(f'ours{tag}', f'sdpa{tag}'):.2f}"
            cells += [seconds(runs.time(f"ours{tag}")), ratio]
        rows.append([*cells, f"{runs.ratio('plain', 'ours'):.1f}×" if length <= PLAIN else "–"])
    header = [
        "tokens",
        "ours",
        "time / SDPA's",
        "ours, causal",
        "time / SDPA's",
        "faster than plain",
    ]
    return table(header, rows)


def by_processor(lengths: list[int], rounds: int = 7) -> str:
    """Forward and backward by the processor's time of one thread, in turns with SDPA.

    That holds beside other programs, too.
    """
    torch.set_num_threads(1)
    rows = []
    for length in lengths:
        inputs, cells = tensors(length, grad=True), [f"{length:,}"]
        for causal in (False, True):
            works = [
                partial(backward, work, inputs, is_causal=causal)
                if work is SDPA
                else partial(backward, work, inputs, causal=causal)
                for work in (SDPA, ch.attention)
            ]
            repeats = max(1, (1024 // length) ** 2)
            took = [[thread_seconds(work, repeats) for work in works] for _ in range(rounds + 1)]
            theirs, ours = map(statistics.median, zip(*took[1:], strict=True))
            cells += [seconds(ours), f"{ours / theirs:.2f}"]
        rows.append(cells)
        print(cells, file=sys.stderr, flush=True)
    return table(["tokens", "ours", "time / SDPA's", "ours, causal", "time / SDPA's"], rows)


def thread_seconds(work: Callable[[], object], repeats: int) -> float:
    """The processor's time of this thread for one of several calls."""
    began = time.thread_time()
    for _ in range(repeats):
        work()
    return (time.thread_time() - began) / repeats


# batch, heads, kv_heads, tokens, width; and what is given beside causal=True
TRAINED: dict[str, tuple[tuple[int, int, int, int, int], dict[str, int]]] = {
    "12 rows of 64 tokens, 4 heads of width 32": ((12, 4, 4, 64, 32), {}),
    "8 rows of 256 tokens, 6 heads of width 64": ((8, 6, 6, 256, 64), {}),
    "1,024 tokens, 8 heads of width 32": ((1, 8, 8, 1024, 32), {}),
    "1,024 tokens, 8 heads of width 128": ((1, 8, 8, 1024, 128), {}),
    "1,024 tokens, 9 heads over 3 of width 64": ((1, 9, 3, 1024, 64), {}),
    "2,048 tokens, 8 heads of width 64, a window of 256": ((1, 8, 8, 2048, 64), {"window": 256}),
}


def trained() -> str:
    """Forward and backward, causal, heads side by side as a model's projections leave them."""
    rows = []
    for name, ((batch, heads, kv_heads, length, width), options) in TRAINED.items():
        torch.manual_seed(0)
        inputs = tuple(
            torch.randn(batch, length, count, width).transpose(1, 2).requires_grad_()
            for count in (heads, kv_heads, kv_heads)
        )
        theirs: dict[str, Any] = {"is_causal": True, "enable_gqa": heads != kv_heads}
        if "window" in options:
            ahead = torch.arange(length) - torch.arange(length)[:, None]
            theirs = {"attn_mask": (ahead <= 0) & (ahead > -options["window"])}
        took = medians(
            {
                "sdpa": partial(backward, SDPA, inputs, **theirs),
                "ours": partial(backward, ch.attention, inputs, causal=True, **options),
            },
            rounds=5,
        )
        ratio = f"{took['ours'] / took['sdpa']:.2f}"
        rows.append([name, seconds(took["sdpa"]), seconds(took["ours"]), ratio])
    return table(["causal", "SDPA", "ours", "time / SDPA's"], rows)


def modules(lengths: list[int]) -> str:
    """The whole module, projections included, against nn.MultiheadAttention."""
    ours = ch.MultiHeadAttention(HEADS * WIDTH, HEADS, bias=True).eval()
    theirs = nn.MultiheadAttention(HEADS * WIDTH, HEADS, batch_first=True).eval()
    rows = []
    with torch.no_grad():
        for length in lengths:
            states = torch.randn(1, length, HEADS * WIDTH)
            took = medians(
                {
                    "ours": partial(ours, states),
                    "off": partial(theirs, states, states, states, need_weights=False),
                    "on": partial(theirs, states, states, states),
                },
                rounds=7,
            )
            ratios = [f"{took[name] / took['ours']:.2f}×" for name in ("off", "on")]
            rows.append([f"{length:,}", seconds(took["ours"]), *ratios])
    return table(["tokens", "ours", "faster than torch's, weights off", "weights on"], rows)


def one_narrow(length: int) -> dict[str, float]:
    """Seconds of each with key width 64, value width 32, where SDPA leaves its fused kernel."""
    inputs = tensors(length, value_dim=32)
    both = {"sdpa": partial(SDPA, *inputs), "ours": partial(ch.attention, *inputs)}
    with torch.no_grad():
        took = medians(both)
        by_call = call_by_call(both, 40960 // length)
    return took | {f"{name}, call by call": found for name, found in by_call.items()}


def narrow_values(lengths: list[int]) -> str:
    """Each length in fresh processes."""
    rows = []
    for length in lengths:
        runs = Runs("narrow", length, PROCESSES)
        cells = [f"{length:,}"]
        for tag in ("", ", call by call"):
            sdpa, ours = f"sdpa{tag}", f"ours{tag}"
            ratios = f"{runs.ratio(sdpa, ours):.2f}× ({runs.range(sdpa, ours)})"
            cells += [seconds(runs.time(sdpa)), seconds(runs.time(ours)), ratios]
        rows.append(cells)
    turns = ["SDPA, call by call", "ours, call by call", "faster"]
    return table(["tokens", "SDPA", "ours", "faster", *turns], rows)


def windows(lengths: list[int], window: int = 256) -> str:
    """A causal window: SDPA needs the whole mask, ours only visits what the window reaches."""
    rows = []
    with torch.no_grad():
        for length in lengths:
            inputs = tensors(length)
            place = torch.arange(length)
            ahead = place - place[:, None]
            mask = (ahead <= 0) & (ahead > -window)
            took = medians(
                {
                    "sdpa": partial(SDPA, *inputs, attn_mask=mask),
                    "ours": partial(ch.attention, *inputs, causal=True, window=window),
                },
                rounds=5,
            )
            ratio = f"{took['sdpa'] / took['ours']:.1f}×"
            rows.append([f"{length:,}", seconds(took["sdpa"]), seconds(took["ours"]), ratio])
    return table(["tokens", "SDPA with a mask", "ours", "faster"], rows)


def one_decoding(cache: int) -> dict[str, float]:
    """Seconds of a grouped step: 9 query heads, 3 key/value heads, one new token."""
    torch.manual_seed(0)
    query = torch.randn(1, 9, 1, WIDTH)
    key, value = torch.randn(2, 1, 3, cache, WIDTH)
    with torch.no_grad():
        return medians(
            {
                "sdpa": partial(SDPA, query, key, value, enable_gqa=True),
                "ours": partial(ch.attention, query, key, value, causal=True),
            },
            rounds=10,
        )


def decoding(caches: list[int]) -> str:
    """Each cache in fresh processes."""
    rows = []
    for cache in caches:
        runs = Runs("decoding", cache, PROCESSES)
        ratio = f"{runs.ratio('sdpa', 'ours'):.2f}×"
        rows.append([f"{cache:,}", seconds(runs.time("sdpa")), seconds(runs.time("ours")), ratio])
    return table(["cached tokens", "SDPA, enable_gqa", "ours", "faster"], rows)


MEMORY_CASES: dict[str, dict[str, Any]] = {
    "causal": {"causal": True},
    "window": {"causal": True, "window": 256},
    "softcap": {"softcap": 30.0},
    "causal, with backward": {"causal": True},
}


def one_memory(case: str, length: int) -> None:
    """Runs alone in a process: what one call takes above its inputs, in bytes."""
    grad = "backward" in case
    ch.attention(*tensors(SHORT, grad=grad), **MEMORY_CASES[case])  # what stays for good
    inputs = tensors(length, grad=grad)
    before = peak_memory()
    if grad:
        backward(ch.attention, inputs, **MEMORY_CASES[case])
    else:
        with torch.no_grad():
            ch.attention(*inputs, **MEMORY_CASES[case])
    print(peak_memory() - before)


def memory(lengths: list[int]) -> str:
    """Peak memory above the inputs, each in a fresh process."""
    rows = []
    for length in lengths:
        row = [f"{length:,}"]
        for case in MEMORY_CASES:
            took = in_process(["--memory", case, "--length", str(length)])
            row.append(megabytes(int(took)))
        rows.append(row)
    return table(["tokens", *MEMORY_CASES], rows)


TIMED: dict[str, Callable[[int], dict[str, float]]] = {  # each in processes of its own
    "forward": partial(one_fused, grad=False),
    "backward": partial(one_fused, grad=True),
    "narrow": one_narrow,
    "decoding": one_decoding,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="short lengths only")
    parser.add_argument("--only", help="one part, by its title")
    parser.add_argument("--publish", action="store_true", help="write docs/benchmarks.md")
    parser.add_argument("--memory", choices=list(MEMORY_CASES), help=argparse.SUPPRESS)
    parser.add_argument("--times", choices=list(TIMED), help=argparse.SUPPRESS)
    parser.add_argument("--length", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.memory:
        one_memory(given.memory, given.length)
        return
    if given.times:
        print(json.dumps(TIMED[given.times](given.length)))
        return
    lengths = [128, 512, 1024, 2048] + ([] if given.quick else [4096, 8192, 16384])
    parts = [f"`python benchmarks/attention.py` on {machine()}. {HEADS} heads of width {WIDTH}."]
    works: dict[str, Callable[[], str]] = {
        "Forward": partial(fused, lengths, grad=False),
        "Forward and backward": partial(fused, [64, 128, 256, *lengths[1:5]], grad=True),
        "Forward and backward, processor time of one thread": partial(
            by_processor, [256, 512, 1024, 2048, 4096]
        ),
        "Forward and backward, other sizes": trained,
        "The module with its projections": partial(modules, lengths[:4]),
        "Value width 32, key width 64": partial(narrow_values, [256, 512, 1024, 2048]),
        "A window of 256 keys": partial(windows, lengths[1:6]),
        "A decoding step: 9 query heads, 3 key/value heads": partial(decoding, [256, 1024, 4096]),
        "Peak memory": partial(memory, [4096, 8192] + ([] if given.quick else [16384])),
    }
    if given.only:
        text = works[given.only]()
        print(text)
        if given.publish:
            publish_part("attention", given.only, text)
        return
    quick = ["--quick"] if given.quick else []
    for title in works:
        text = in_process(["--only", title, *quick])
        parts.append(f"**{title}**\n\n{text}")
        print(parts[-1], end="\n\n", flush=True)
    if given.publish:
        publish("attention", "\n\n".join(parts))


def in_process(arguments: list[str]) -> str:
    """What a part prints that runs in a process of its own: memory that an earlier part left
    behind would help SDPA where it spells out all scores."""
    command = [sys.executable, __file__, *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    main()
