"""Every file against llama.cpp and ik_llama.cpp: decoding, prompts, a batch, memory.

Each file is measured on its own (``--files NAME``), all contestants in turns; what was found is
kept in build/bench-files/found.json, and the tables are made of all that is there.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from measure import megabytes, table

from generating.contestants import Clearhead, some_ids, turns
from generating.files import FOLDER, LABELS, file_named
from generating.peers import IkLlama, IkLlamaOfRows, Llama, Peer
from generating.processes import answer, process

CONTESTANTS = ("clearhead", "llama.cpp", "ik_llama.cpp")
FOUND = FOLDER / "found.json"
SPEEDS = {
    "16": "decode, 16 tokens cached",
    "1024": "decode, 1,024 tokens cached",
    "prompt": "prompt of 512 tokens",
}


def remembered(part: str, name: str, figures: Any) -> None:
    """Keep what was found about a file."""
    found = json.loads(FOUND.read_text()) if FOUND.exists() else {}
    found.setdefault(part, {})[name] = figures
    FOUND.write_text(json.dumps(found, indent=1))


def all_found(part: str) -> dict[str, Any]:
    """What is known about the files, in their order."""
    found = json.loads(FOUND.read_text()).get(part, {})
    return {name: found[name] for name in LABELS if name in found}


def measured(names: list[str], part: str, measure: Callable[[Path], Any]) -> dict[str, Any]:
    """Measure a part of some files; return what is known about all of them."""
    for name in names:
        remembered(part, name, measure(file_named(name)))
        print(part, name, all_found(part)[name], file=sys.stderr, flush=True)
    return all_found(part)


# Speed.
def speeds_of(path: Path, rounds: int) -> dict[str, dict[str, float]]:
    """Tokens each second of everybody."""
    mine = Clearhead(path, keep_float32=False)
    peers: dict[str, Llama | IkLlama] = {
        "llama.cpp": Llama(path, context=1200),
        "ik_llama.cpp": IkLlama(path, context=1200),
    }
    found = {}
    for key in ("16", "1024"):
        ids = some_ids(int(key))
        work = {"clearhead": mine.decode([ids])}
        took = turns(work | {name: peer.decode([ids]) for name, peer in peers.items()}, rounds)
        found[key] = {name: 1 / each for name, each in took.items()}
    ids = some_ids(512)
    work = {"clearhead": mine.prefill(ids)}
    took = turns(work | {name: peer.prefill(ids) for name, peer in peers.items()}, rounds)
    found["prompt"] = {name: 512 / each for name, each in took.items()}
    end(*peers.values())
    return found


def end(*peers: Peer) -> None:
    for peer in peers:
        peer.end()


def speeds(names: list[str], rounds: int) -> str:
    found = measured(names, "speeds", lambda path: speeds_of(path, rounds))
    tables = []
    for key, title in SPEEDS.items():
        rows = [[LABELS[name], *cells(each[key])] for name, each in found.items()]
        tables.append(table([f"{title}, tokens/s", *CONTESTANTS, *RATIOS], rows))
    return "\n\n".join(tables)


RATIOS = ["than llama.cpp", "than ik_llama.cpp"]


def cells(speed: dict[str, float]) -> list[str]:
    ratios = [f"{speed['clearhead'] / speed[name]:.2f}×" for name in CONTESTANTS[1:]]
    return [*(f"{speed[name]:.4g}" for name in CONTESTANTS), *ratios]


# A batch.
def batch_of(path: Path, rounds: int) -> dict[str, float]:
    """Tokens each second of eight rows together."""
    rows = [some_ids(16 + i)[:16] for i in range(8)]
    peers = [Llama(path, context=128, rows=8), IkLlamaOfRows(path, context=128, rows=8)]
    contestants: list[Any] = [Clearhead(path, keep_float32=False), *peers]
    work = {name: each.decode(rows) for name, each in zip(CONTESTANTS, contestants, strict=True)}
    took = turns(work, rounds)
    end(*peers)
    return {name: 8 / each for name, each in took.items()}


def batches(names: list[str], rounds: int) -> str:
    found = measured(names, "batches", lambda path: batch_of(path, rounds))
    rows = [[LABELS[name], *cells(each)] for name, each in found.items()]
    return table(["8 rows, 16 tokens cached in each, tokens/s", *CONTESTANTS, *RATIOS], rows)


# Memory.
def memory_of(path: Path) -> dict[str, float]:
    """Peak memory of everybody: load, a prompt of 512 tokens, 32 more. The first process compiles
    the kernels that are not kept yet, for which numba takes memory of its own."""
    answer(process("held_alone", path))
    held = answer(process("held_alone", path))
    found = {"file": path.stat().st_size, "cache": held["cache"], "clearhead": held["peak"]}
    for kind, name in ((Llama, "llama.cpp"), (IkLlama, "ik_llama.cpp")):
        peer: Llama | IkLlama = kind(path, context=1024)
        peer.decode([some_ids(512)])()
        peer.end()
        found[name] = peer.peak
    return found


def memories(names: list[str]) -> str:
    found = measured(names, "memories", memory_of)
    rows = []
    for name, each in found.items():
        allowed = each["file"] * 1.25 + each["cache"] + 350e6
        cells = [each["file"], each["clearhead"], allowed, each["llama.cpp"], each["ik_llama.cpp"]]
        rows.append([LABELS[name], *map(megabytes, cells)])
    head = ["peak memory", "the file", "clearhead", "file × 1.25 + cache + 350 MB"]
    return table([*head, *CONTESTANTS[1:]], rows)


# How much of the bandwidth a step takes.
def limit_of(path: Path, rounds: int, read: Callable[[Path], float]) -> dict[str, float]:
    """A step's bytes each second, and what the cores can read, measured before and after."""
    mine = Clearhead(path, keep_float32=False)
    work = mine.decode([some_ids(16)])
    before = read(path)
    took = turns({"clearhead": work}, rounds)["clearhead"]
    limit = max(before, read(path))
    return {"step": took, "bytes": mine.engine.weight_bytes, "limit": limit}


def limits_of_files(names: list[str], rounds: int, read: Callable[[Path], float]) -> str:
    found = measured(names, "limits", lambda path: limit_of(path, rounds, read))
    rows = []
    for name, each in found.items():
        rate = each["bytes"] / each["step"]
        rows.append(
            [
                LABELS[name], f"{1 / each['step']:.4g}", megabytes(each["bytes"]),
                f"{rate / 1e9:.1f} GB/s", f"{each['limit'] / 1e9:.1f} GB/s",
                f"{rate / each['limit']:.0%}",
            ]
        )  # fmt: skip
    head = ["16 tokens cached", "tokens/s", "weights of a step", "read at", "cores read", "of it"]
    return table(head, rows)


# Agreement.
def agreement_of(path: Path, text: str, tokens: int) -> dict[str, float]:
    """Ours, torch's float32 and ik_llama.cpp's predictions after every token of a text."""
    mine, peer = Clearhead(path), IkLlama(path, context=tokens)
    tokenizer = mine.loaded.tokenizer
    assert tokenizer is not None
    ids = tokenizer.encode(text)[:tokens]
    ours = mine.new(mine.engine).extend_all(ids).log_softmax(-1)
    with torch.no_grad():
        exact = mine.loaded.model(torch.tensor([ids]))[0].log_softmax(-1)
    theirs = peer.logits(ids, FOLDER / "logits").log_softmax(-1)
    peer.end()
    found: dict[str, float] = {"tokens": len(ids)}
    for name, (left, right) in {
        "clearhead, torch": (ours, exact),
        "ik_llama.cpp, torch": (theirs, exact),
        "clearhead, ik_llama.cpp": (ours, theirs),
    }.items():
        chosen = exact.argmax(-1, keepdim=True)
        off = (left.gather(-1, chosen) - right.gather(-1, chosen)).abs()
        found[f"{name}: same"] = float((left.argmax(-1) == right.argmax(-1)).float().mean())
        found[f"{name}: mean"] = float(off.mean())
        found[f"{name}: largest"] = float(off.max())
    return found


def agreements(names: list[str], text: str, tokens: int = 1024) -> str:
    """How far predictions lie apart, on the files whose weights are real."""
    real = [name for name in names if not name.startswith("1.1B")]
    found = measured(real, "agreement", lambda path: agreement_of(path, text, tokens))
    rows = []
    for name, each in found.items():
        for pair in ("clearhead, torch", "ik_llama.cpp, torch", "clearhead, ik_llama.cpp"):
            off = [f"{each[f'{pair}: {what}']:.2g}" for what in ("mean", "largest")]
            rows.append([LABELS[name], pair, f"{each[f'{pair}: same']:.2%}", *off])
    head = [f"{tokens:,} tokens", "between", "same first choice"]
    return table([*head, "log-probability of it off by, mean", "largest"], rows)
