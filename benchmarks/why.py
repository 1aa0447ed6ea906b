"""Why a model predicts a token: ``python benchmarks/why.py [--only PART] [--publish]``.

Agreement: the direct part of every head, against TransformerLens' direct logit attribution
(``stack_head_results`` and ``apply_ln_to_stack``) on the same random weights: a small GPT-2 and a
small Llama.

Cost: one explained logit of SmolLM2, against the forward alone and against TransformerLens, which
keeps ``hook_z`` of every layer (``run_with_cache``) and stacks its head results at the last
position. Each model has a process to itself, in which forward and explanation take turns on one
thread. Time is the processor time of that thread, so that a busy machine can measure it; memory
is the highest above what was held before, in a run of its own.

Ablation: every head and feed-forward layer of SmolLM2 without which the model is run, in batches.

TransformerLens has an environment of its own, made on first use.
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
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from measure import machine, megabytes, memory_of, publish, seconds, table
from watching import lens_environment, lens_model

TEXT = "The capital of France is"
IDS = [5, 17, 29, 41, 53, 7, 11]
TOKEN, INSTEAD = 13, 29
ROUNDS = {512: 4, 2048: 1, 8192: 0}  # beside the run whose memory is measured, which is timed, too
LONGEST_WHOLE = 512  # tokens at which TransformerLens' whole cache is kept as well
CACHE = 2 * 30 * 3 * 64 * 4  # bytes of SmolLM2's key-value cache for each token, float32
Works = dict[str, Callable[[], object]]


# Agreement


def tiny_models(folder: Path) -> None:
    """In TransformerLens' environment: two random models, saved, and their head results."""
    import transformers

    transformers.logging.set_verbosity_error()
    sizes: dict[str, Any] = {"vocab_size": 97, "pad_token_id": 0, "bos_token_id": 1}
    made = {
        "gpt2": transformers.GPT2LMHeadModel(
            transformers.GPT2Config(n_positions=64, n_embd=40, n_layer=3, n_head=5, **sizes)
        ),
        "llama": transformers.LlamaForCausalLM(
            transformers.LlamaConfig(
                hidden_size=40, intermediate_size=72, num_hidden_layers=3, num_attention_heads=4,
                num_key_value_heads=2, max_position_embeddings=64, **sizes,
            )
        ),
    }  # fmt: skip
    generator = torch.Generator().manual_seed(1)
    for name, model in made.items():
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.normal_(std=0.2, generator=generator)
        model.save_pretrained(folder / name)
        _word_tokenizer().save_pretrained(folder / name)
        print(json.dumps({name: lens_attribution(folder / name)}), flush=True)


def _word_tokenizer() -> Any:
    """TransformerLens boots no Llama without a tokenizer."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    words = {f"w{number}": number for number in range(97)}
    inner = Tokenizer(models.WordLevel(words, unk_token="w0"))
    return PreTrainedTokenizerFast(
        tokenizer_object=inner, unk_token="w0", pad_token="w0", bos_token="w1", eos_token="w1"
    )


def lens_attribution(folder: Path) -> list[float]:
    """Direct logit attribution of every head by TransformerLens, for a difference of logits."""
    model = _bridge(folder)
    with torch.no_grad():
        cache = model.run_with_cache(torch.tensor([IDS]))[1]
        heads = cache.stack_head_results(layer=-1, pos_slice=-1)
        scaled = cache.apply_ln_to_stack(heads, layer=-1, pos_slice=-1)[:, 0]
        direction = (model.W_U[:, TOKEN] - model.W_U[:, INSTEAD]) * model.ln_final.weight
        found: list[float] = (scaled @ direction).tolist()
    return found


def _bridge(path: Path) -> Any:
    bridge: Any = importlib.import_module("transformer_lens.model_bridge").TransformerBridge
    return bridge.boot_transformers(str(path), device="cpu")


def agreement() -> str:
    """Both sides on the same weights: the largest difference of a head's part."""
    import clearhead as ch

    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, theirs in _in_lens("--tiny", folder).items():
            why = ch.why(ch.load(Path(folder) / name), IDS, TOKEN, INSTEAD, effects=False)
            ours = sorted(why.heads, key=lambda part: [int(n) for n in part.name[1:].split("H")])
            apart = max(abs(part.value - their) for part, their in zip(ours, theirs, strict=True))
            largest = max(abs(part.value) for part in ours)
            rows.append([name, str(len(ours)), f"{largest:.3f}", f"{apart:.1e}"])
    return table(["model", "heads", "largest part", "largest difference"], rows)


def _in_lens(*arguments: str) -> dict[str, Any]:
    """Run this file in TransformerLens' environment; every line that it prints is an object."""
    command = [str(lens_environment()), __file__, *arguments]
    env = os.environ | {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    if done.returncode != 0:
        raise SystemExit(f"TransformerLens failed:\n{done.stderr[-2000:]}")
    found: dict[str, Any] = {}
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            found |= json.loads(line)
    return found


# Cost


def of_clearhead(path: Path, ids: torch.Tensor) -> Works:
    import clearhead as ch

    loaded = ch.load(path)
    row = ids[0].tolist()
    return {
        "clearhead": partial(loaded.model, ids, last_only=True),
        "clearhead, why": partial(ch.why, loaded, row, TOKEN, INSTEAD, effects=False),
    }


def of_lens(path: Path, ids: torch.Tensor) -> Works:
    """In TransformerLens' environment."""
    model = _bridge(path)

    def is_needed(name: str) -> bool:
        return name.endswith(("hook_z", "attn.o.hook_in")) or name.startswith("ln_final")

    def attributed(names: Callable[[str], bool] | None) -> torch.Tensor:
        cache = model.run_with_cache(ids, return_type=None, names_filter=names)[1]
        heads = cache.stack_head_results(layer=-1, pos_slice=-1)
        scaled = cache.apply_ln_to_stack(heads, layer=-1, pos_slice=-1)[:, 0]
        direction = (model.W_U[:, TOKEN] - model.W_U[:, INSTEAD]) * model.ln_final.weight
        parts: torch.Tensor = scaled @ direction
        assert len(parts) == 270
        return parts

    works: Works = {
        "TransformerLens": partial(model, ids, return_type=None),
        "TransformerLens, hook_z": partial(attributed, is_needed),
    }
    if ids.shape[1] <= LONGEST_WHOLE:
        works["TransformerLens, whole cache"] = partial(attributed, None)
    return works


MODELS: dict[str, Callable[[Path, torch.Tensor], Works]] = {
    "clearhead": of_clearhead,
    "lens": of_lens,
}


def model_process(name: str, path: Path, length: int) -> None:
    """Runs alone: memory first, each by itself; then the times, in turns."""
    torch.set_num_threads(1)
    ids = torch.randint(5, 40_000, (1, length), generator=torch.Generator().manual_seed(0))
    found: dict[str, dict[str, Any]] = {}
    with torch.no_grad():
        works = MODELS[name](path, ids)
        for title, work in works.items():
            peak, took = _memory(work)
            found[title] = {"peak": peak, "seconds": [] if ROUNDS[length] > 1 else [took]}
        for _ in range(ROUNDS[length]):
            for title, work in works.items():
                found[title]["seconds"].append(_thread_seconds(work))
    print(json.dumps(found), flush=True)


def _memory(work: Callable[[], object]) -> tuple[int, float]:
    """One run, which also warms up; what earlier ones freed goes back to the system first."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    start = time.thread_time()
    peak = memory_of(work)
    return peak, time.thread_time() - start


def _thread_seconds(work: Callable[[], object]) -> float:
    gc.collect()
    start = time.thread_time()
    work()
    return time.thread_time() - start


def measured(name: str, path: Path, length: int, results: Path | None) -> dict[str, Any]:
    """A model in a process of its own; or what an earlier one found."""
    kept = None if results is None else results / f"{name}-{length}.json"
    if kept is not None and kept.exists():
        earlier: dict[str, Any] = json.loads(kept.read_text())
        return earlier
    found = _measured(name, path, length)
    if kept is not None:
        kept.write_text(json.dumps(found))
    return found


def _measured(name: str, path: Path, length: int) -> dict[str, Any]:
    arguments = ["--model", name, "--path", str(path), "--length", str(length)]
    if name == "lens":
        return _in_lens(*arguments)
    command = [sys.executable, __file__, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def cost(lengths: list[int], longest_lens: int, results: Path | None) -> str:
    """Both at all lengths; the peer as far as its memory goes."""
    from clearhead.checkpoints.store.model_store import ModelStore

    path = ModelStore().pull("smollm2")
    rows, said = [], []
    for length in lengths:
        found = measured("clearhead", path, length, results)
        beside = found["clearhead, why"]["peak"] - found["clearhead"]["peak"]
        said.append(f"{length:,} tokens {max(0, beside) / (CACHE * length):.2f}")
        if length <= longest_lens:
            found |= measured("lens", lens_model(path), length, results)
        rows += _rows(length, found)
        print(table(HEADER, rows[-len(found) :]), flush=True)
    return (
        f"{table(HEADER, rows)}\n\nMemory of `why` beside that of the forward, in key-value "
        f"caches (float32): {', '.join(said)}. TransformerLens computes attention with whole "
        f"weight matrices: at 8,192 tokens those of one layer of SmolLM2 are 2.4 GB (computed, not "
        f"tried); it was "
        f"run up to {longest_lens:,} tokens. Its parts are those of heads; ours go on to every "
        "source token."
    )


HEADER = ["tokens", "", "time, one thread", "of its forward", "peak memory"]


def _rows(length: int, found: dict[str, Any]) -> list[list[str]]:
    rows = []
    for title, one in found.items():
        plain = found[title.partition(",")[0]]["seconds"]
        ratio = statistics.median(
            mine / its for mine, its in zip(one["seconds"], plain, strict=True)
        )
        usual = statistics.median(one["seconds"])
        rows.append([f"{length:,}", title, seconds(usual), f"{ratio:.2f}×", megabytes(one["peak"])])
    return rows


# Ablation


def ablation() -> str:
    """All heads of a short text, by processor time of one thread; and against one at a time."""
    import clearhead as ch
    from clearhead.explain.why.effects import effects_of
    from clearhead.explain.why.make_why import explain
    from clearhead.explain.why.prediction_run import run_for

    torch.set_num_threads(1)
    loaded = ch.load("smollm2")
    run = run_for(loaded, TEXT)
    token, instead = run.logits.topk(2).indices.tolist()
    why = explain(run, token, instead)
    work: Works = {
        "one forward": partial(run_for, loaded, TEXT),
        "explain": partial(explain, run, token, instead),
        "every head and feed-forward layer ablated": partial(effects_of, run, why),
    }
    times: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(4):
        for name, one in work.items():
            times[name].append(_thread_seconds(one))
    rows = [[name, seconds(min(found[1:]))] for name, found in times.items()]
    return f"“{TEXT}”, 300 ablations:\n\n{table(['', 'time, one thread'], rows)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=["agreement", "cost", "ablation"], help="one part")
    parser.add_argument("--quick", action="store_true", help="short lengths only")
    parser.add_argument("--publish", action="store_true", help="write docs/benchmarks.md")
    parser.add_argument("--results", type=Path, help="keep results of processes here, and use them")
    parser.add_argument("--tiny", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--model", choices=list(MODELS), help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--length", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.tiny:
        tiny_models(given.tiny)
        return
    if given.model:
        model_process(given.model, given.path, given.length)
        return
    lengths = [512] if given.quick else [512, 2048, 8192]
    parts: dict[str, Callable[[], str]] = {
        "agreement": agreement,
        "cost": partial(cost, lengths, 2048, given.results),
        "ablation": ablation,
    }
    for name, part in parts.items():
        if given.only in (None, name):
            text = f"`python benchmarks/why.py --only {name}` on {machine()}.\n\n{part()}"
            print(text, end="\n\n", flush=True)
            if given.publish:
                publish(f"why {name}", text)


if __name__ == "__main__":
    main()
