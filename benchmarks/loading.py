"""Loading and running models against transformers: ``python benchmarks/loading.py [--publish]``.

smollm2 from its GGUF file, minilm from its folder; float32; needs ``pip install -e ".[bench]"``.
Loading is timed in fresh processes that take turns, after the imports (ours come on first use and
are counted, transformers' 0.9 s are not); forwards in one process, in turns.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from measure import machine, medians, megabytes, publish, seconds, table
from torch import Tensor
from torch.nn import functional

TEXT = "The kids were scared of the lions, so they left right away."
ROUNDS = 3


def ours(path: Path) -> Callable[[], object]:
    import clearhead as ch

    def first_logits() -> object:
        loaded = ch.load(path)
        assert loaded.tokenizer is not None
        return loaded.model(torch.tensor([loaded.tokenizer.encode(TEXT)]))

    return first_logits


def theirs(path: Path) -> Callable[[], object]:
    import transformers

    where: dict[str, Any] = {"pretrained_model_name_or_path": str(path)}
    if path.suffix == ".gguf":
        where = {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
    kind: Any = (
        transformers.AutoModelForCausalLM if path.suffix == ".gguf" else transformers.AutoModel
    )

    def first_logits() -> object:
        model = kind.from_pretrained(**where, dtype=torch.float32).eval()
        tokenizer = transformers.AutoTokenizer.from_pretrained(**where)
        return model(**tokenizer(TEXT, return_tensors="pt"))

    return first_logits


def one_process(contestant: str, path: Path) -> None:
    """Runs alone in a process: load, first logits, and what it took."""
    start = time.perf_counter()
    work = (ours if contestant == "clearhead" else theirs)(path)
    imported = time.perf_counter()
    with torch.no_grad():
        work()
    done = time.perf_counter()
    status = Path("/proc/self/status").read_text()
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]
    print(
        json.dumps({"imports": imported - start, "load": done - imported, "peak": int(peak) * 1024})
    )


def loading(name: str, path: Path) -> list[list[str]]:
    found: dict[str, list[dict[str, float]]] = {"clearhead": [], "transformers": []}
    for _ in range(ROUNDS):
        for contestant, runs in found.items():
            command = [sys.executable, __file__, "--one", contestant, "--path", str(path)]
            env = os.environ | {"TRANSFORMERS_VERBOSITY": "error", "HF_HUB_OFFLINE": "1"}
            done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
            runs.append(json.loads(done.stdout.splitlines()[-1]))

    def median(contestant: str, what: str) -> float:
        return statistics.median(run[what] for run in found[contestant])

    rows = []
    mine, other = median("clearhead", "load"), median("transformers", "load")
    rows.append(
        [f"{name}: load, first logits", seconds(mine), seconds(other), f"{other / mine:.2f}×"]
    )
    mine, other = median("clearhead", "peak"), median("transformers", "peak")
    rows.append([f"{name}: peak memory", megabytes(mine), megabytes(other), f"{other / mine:.2f}×"])
    return rows


def forward(path: Path) -> list[list[str]]:
    """512 tokens of smollm2, logits of the last."""
    import transformers

    import clearhead as ch

    mine = ch.load(path).model
    other = transformers.AutoModelForCausalLM.from_pretrained(
        str(path.parent), gguf_file=path.name, dtype=torch.float32
    ).eval()
    torch.manual_seed(0)
    ids = torch.randint(5, 40_000, (1, 512))
    with torch.no_grad():
        apart = (mine(ids, last_only=True) - other(ids, logits_to_keep=1).logits).abs().max()
        took = medians(
            {
                "ours": lambda: mine(ids, last_only=True),
                "theirs": lambda: other(ids, logits_to_keep=1),
            }
        )
    return [
        [
            f"smollm2: 512 tokens (logits differ by {apart:.0e})", seconds(took["ours"]),
            seconds(took["theirs"]), f"{took['theirs'] / took['ours']:.2f}×",
        ]
    ]  # fmt: skip


def sentences(folder: Path) -> list[list[str]]:
    """A batch of 32 sentences, from text to vectors."""
    import transformers
    from sentence_transformers import SentenceTransformer

    import clearhead as ch

    words = TEXT.replace(",", "").replace(".", "").split()
    texts = [" ".join(words[i % 7 :] + words[: 2 * (i % 11)]) for i in range(32)]
    mine = ch.load(folder)
    tokenizer = mine.tokenizer
    assert tokenizer is not None
    theirs_tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    theirs_model = transformers.AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    whole = SentenceTransformer(str(folder), device="cpu")

    def by_clearhead() -> Tensor:
        rows = [tokenizer.encode(text) for text in texts]
        width = max(map(len, rows))
        ids = torch.tensor([row + [0] * (width - len(row)) for row in rows])
        counts = torch.tensor([len(row) for row in rows])
        vectors: Tensor = mine.model(ids, real=torch.arange(width) < counts[:, None])
        return vectors

    def by_transformers() -> Tensor:
        batch = theirs_tokenizer(texts, padding=True, return_tensors="pt")
        states = theirs_model(**batch).last_hidden_state
        real = batch["attention_mask"][..., None]
        return functional.normalize((states * real).sum(1) / real.sum(1), dim=-1)

    def by_sentence_transformers() -> Tensor:
        vectors: Tensor = whole.encode(
            texts, batch_size=32, convert_to_tensor=True, show_progress_bar=False
        )
        return vectors

    with torch.no_grad():
        apart = (by_clearhead() - by_sentence_transformers()).abs().max()
        took = medians(
            {
                "ours": by_clearhead,
                "transformers": by_transformers,
                "sentence-transformers": by_sentence_transformers,
            }
        )
    return [
        [
            f"minilm: 32 sentences (vectors differ by {apart:.0e}), against {name}",
            seconds(took["ours"]), seconds(took[name]), f"{took[name] / took['ours']:.2f}×",
        ]
        for name in ("transformers", "sentence-transformers")
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--publish", action="store_true", help="write docs/benchmarks.md")
    parser.add_argument("--one", choices=["clearhead", "transformers"], help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        one_process(given.one, given.path)
        return
    from clearhead.checkpoints.store.model_store import ModelStore

    store = ModelStore()
    smollm2, minilm = store.pull("smollm2"), store.pull("minilm")
    rows = []
    parts: list[Callable[[], list[list[str]]]] = [
        partial(loading, "smollm2", smollm2),
        partial(loading, "minilm", minilm),
        partial(forward, smollm2),
        partial(sentences, minilm),
    ]
    for part in parts:
        found = part()
        rows.extend(found)
        print(table(["", "clearhead", "peer", "faster / smaller"], found), flush=True)
    header = ["", "clearhead", "transformers (or as said)", "faster / smaller"]
    if given.publish:
        publish(
            "loading", f"`python benchmarks/loading.py` on {machine()}.\n\n{table(header, rows)}"
        )


if __name__ == "__main__":
    main()
