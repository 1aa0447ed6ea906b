"""Attention against recurrence: ``python benchmarks/recurrence.py [--publish]``.

One causal attention layer (``ch.MultiHeadAttention``) against one recurrent layer (``nn.GRU`` of
torch) of the same width. Training: forward and backward of one sequence, all positions. Generation:
one more token after n, with the key-value cache or with the recurrent state. Memory: what must be
kept of the past. Recall: both learn to name the first symbol of a sequence at its end, with the
same number of steps, batch and learning rate; three random seeds each. They take turns.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

import torch
from measure import ROOT, machine, medians, publish, seconds, table
from torch import Tensor, nn
from torch.nn import functional

import clearhead as ch
from clearhead.attention.sinusoidal import sinusoidal_positions

WIDTH, HEADS = 256, 8
LENGTHS = (16, 64, 256, 1024, 4096)
SYMBOLS, STEPS, BATCH = 16, 300, 32
RECALL_LENGTHS = (8, 32, 128)
SEEDS = (3, 5, 7)
RESULTS = ROOT / "src" / "clearhead" / "views" / "course" / "data" / "recurrence.json"


def layers() -> tuple[nn.Module, nn.Module]:
    attention = ch.MultiHeadAttention(WIDTH, HEADS, causal=True)
    return attention, nn.GRU(WIDTH, WIDTH, batch_first=True)


def training(length: int) -> dict[str, float]:
    attention, recurrent = layers()
    states = torch.randn(1, length, WIDTH)

    def step(layer: Callable[[Tensor], Any]) -> None:
        found = layer(states)
        (found[0] if isinstance(found, tuple) else found).sum().backward()

    return medians({"attention": lambda: step(attention), "recurrence": lambda: step(recurrent)})


@torch.no_grad()
def generation(length: int) -> dict[str, float]:
    attention, recurrent = layers()
    past, token = torch.randn(1, length, WIDTH), torch.randn(1, 1, WIDTH)
    cache = ch.KVCache(length + 1)
    attention(past, cache=cache)
    state = torch.randn(1, 1, WIDTH)

    def attend() -> None:
        attention(token, cache=cache)
        cache.crop(length)

    return medians({"attention": attend, "recurrence": lambda: recurrent(token, state)})


class Recall(nn.Module):
    """Embedding, one layer, logits at the last position."""

    def __init__(self, kind: str, width: int = 64) -> None:
        super().__init__()
        self.kind, self.width = kind, width
        self.embedding = nn.Embedding(SYMBOLS, width)
        self.attention = ch.MultiHeadAttention(width, 4, causal=True)
        self.recurrent = nn.GRU(width, width, batch_first=True)
        self.output = nn.Linear(width, SYMBOLS)

    def forward(self, ids: Tensor) -> Tensor:
        states = self.embedding(ids)
        if self.kind == "attention":
            found = self.attention(states + sinusoidal_positions(ids.shape[1], self.width))
        else:
            found = self.recurrent(states)[0]
        return self.output(found[:, -1])  # type: ignore[no-any-return]


def recall(kind: str, length: int, seed: int) -> float:
    """The share of 512 new sequences whose first symbol is named at their end."""
    torch.manual_seed(seed)
    model = Recall(kind)
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(STEPS):
        ids = torch.randint(SYMBOLS, (BATCH, length))
        loss = functional.cross_entropy(model(ids), ids[:, 0])
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    ids = torch.randint(SYMBOLS, (512, length))
    with torch.no_grad():
        return float((model(ids).argmax(1) == ids[:, 0]).float().mean())


def measured() -> dict[str, Any]:
    found: dict[str, Any] = {"machine": machine(), "width": WIDTH, "rows": [], "recall": []}
    for length in LENGTHS:
        row = {"tokens": length, "training": training(length), "generation": generation(length)}
        row["kept"] = {"attention": 2 * length * WIDTH, "recurrence": WIDTH}
        found["rows"].append(row)
        print(row, flush=True)
    for length in RECALL_LENGTHS:
        shares = {
            kind: [recall(kind, length, seed) for seed in SEEDS]
            for kind in ("attention", "recurrence")
        }
        found["recall"].append({"tokens": length, **shares})
        print(found["recall"][-1], flush=True)
    return found


def said(found: dict[str, Any]) -> str:
    rows = [
        [
            f"{row['tokens']:,}",
            *(seconds(row[what][kind]) for what in ("training", "generation")
              for kind in ("attention", "recurrence")),
            f"{row['kept']['attention']:,} : {row['kept']['recurrence']:,}",
        ]
        for row in found["rows"]
    ]  # fmt: skip
    header = [
        "tokens", "training: attention", "training: GRU", "next token: attention",
        "next token: GRU", "numbers kept",
    ]  # fmt: skip
    recalled = [
        [str(row["tokens"]), *(", ".join(f"{one:.0%}" for one in row[kind])
                               for kind in ("attention", "recurrence"))]
        for row in found["recall"]
    ]  # fmt: skip
    return (
        f"{table(header, rows)}\n\nRecall of the first symbol (one of {SYMBOLS}) after {STEPS} "
        f"steps of training, three random seeds:\n\n"
        f"{table(['tokens', 'attention', 'GRU'], recalled)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--publish", action="store_true", help="write docs/benchmarks.md")
    given = parser.parse_args()
    found = measured()
    text = (
        f"`python benchmarks/recurrence.py` on {found['machine']}. Width {WIDTH}.\n\n{said(found)}"
    )
    print(text)
    if given.publish:
        RESULTS.write_text(json.dumps(found, indent=1) + "\n")
        publish("recurrence", text)


if __name__ == "__main__":
    main()
