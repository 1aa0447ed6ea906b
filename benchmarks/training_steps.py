"""What a step of training takes: against a plain torch loop, and beside other programs.

    python benchmarks/training_steps.py plain     # the same model in plain torch, in turns
    python benchmarks/training_steps.py beside    # alone, and beside two programs that compute

The plain loop has the same model (compared weight by weight before anything is timed), batch and
AdamW, written with torch's own functions: ``F.scaled_dot_product_attention``, ``F.rms_norm``,
``F.cross_entropy``, ``torch.optim.AdamW(fused=True)``. Ours is ``train_task`` as users run it: with
its checks, log and schedule; with AdamW in float32, as the plain loop. The clock of the processor
counts as well: it does not see what other programs take.

``beside`` runs the same steps in processes of their own, whose threads wait in two ways: torch's
(they spin for milliseconds), and the one that ``clearhead train`` sets (``cli/start.py``).
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import torch
from measure import corpus_at, machine, publish, table
from torch import Tensor, nn
from torch.nn import functional

from clearhead.cli.start import SPINS
from clearhead.models.config import ModelConfig
from clearhead.training.data.batches.packed import PackedBatches
from clearhead.training.events import Stepped
from clearhead.training.initialisation import fresh_model
from clearhead.training.loop import train_task
from clearhead.training.settings import TrainingSettings
from clearhead.training.tasks.task import Task
from training import LONG_SETTINGS, LONG_SHAPE, SETTINGS, SHAKESPEARE, SHAPE, Text

SAME: dict[str, Any] = {"dropout": 0.0}  # torch's dropout draws other numbers
WARM = 2  # steps that are not counted
BUSY = 2  # other programs


def config_of(text: Text) -> ModelConfig:
    return ModelConfig.from_fields(SHAPE | {"vocab": text.vocab} | LONG_SHAPE | SAME)


def plain_logits(weights: dict[str, Tensor], config: ModelConfig, ids: Tensor) -> Tensor:
    """The model as a function of its weights, in torch's own operations."""
    epsilon, width = config.norm_epsilon, config.model // config.heads
    states = weights["stack.embedding.tokens.weight"][ids]
    angles = rotary(ids.shape[1], width, config.rotary_base)
    for layer in range(config.layers):
        name = f"stack.blocks.{layer}"
        normed = functional.rms_norm(
            states, (config.model,), weights[f"{name}.attention_residual.before.weight"], epsilon
        )
        heads = [
            functional.linear(normed, weights[f"{name}.attention.{part}.weight"])
            .view(*ids.shape, config.heads, width)
            .transpose(1, 2)
            for part in ("query", "key", "value")
        ]
        for place, part in enumerate(("query", "key")):
            norm = weights[f"{name}.attention.{part}_norm.weight"]
            heads[place] = turned(
                functional.rms_norm(heads[place], (width,), norm, epsilon), *angles
            )
        mixed = functional.scaled_dot_product_attention(
            heads[0], heads[1], heads[2], is_causal=True
        )
        mixed = mixed.transpose(1, 2).flatten(2)
        states = states + functional.linear(mixed, weights[f"{name}.attention.output.weight"])
        normed = functional.rms_norm(
            states, (config.model,), weights[f"{name}.feed_forward_residual.before.weight"], epsilon
        )
        gate, up = (
            functional.linear(normed, weights[f"{name}.feed_forward.{part}.weight"])
            for part in ("gate", "up")
        )
        down = weights[f"{name}.feed_forward.down.weight"]
        states = states + functional.linear(functional.silu(gate) * up, down)
    states = functional.rms_norm(states, (config.model,), weights["stack.norm.weight"], epsilon)
    return functional.linear(states, weights["stack.embedding.tokens.weight"])


def rotary(length: int, width: int, base: float) -> tuple[Tensor, Tensor]:
    rates = base ** (-torch.arange(0, width, 2) / width)
    angles = torch.arange(length)[:, None] * rates
    return angles.cos().repeat(1, 2), angles.sin().repeat(1, 2)


def turned(states: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    first, second = states.chunk(2, dim=-1)
    return states * cosine + torch.cat([-second, first], dim=-1) * sine


def batches_of(text: Text, settings: TrainingSettings, config: ModelConfig) -> PackedBatches:
    return PackedBatches(
        [text.training.tolist()], seed=0, context=config.context, batch_tokens=settings.batch_tokens
    )


def plain_loop(text: Text, settings: TrainingSettings) -> Iterator[float]:
    """Steps of the plain loop; yields the loss of each."""
    config = config_of(text)
    model = fresh_model(config, 0)
    weights = {name: p.detach().clone().requires_grad_() for name, p in model.named_parameters()}
    batches = batches_of(text, settings, config)
    check_same(model, weights, config, batches.batch(0).ids)
    optimiser = torch.optim.AdamW(
        weights.values(), lr=settings.learning_rate, betas=(settings.beta_1, settings.beta_2),
        weight_decay=settings.weight_decay, fused=True,
    )  # fmt: skip
    for step in range(settings.steps or 0):
        batch = batches.batch(step)
        logits = plain_logits(weights, config, batch.ids)
        loss = functional.cross_entropy(logits.flatten(0, 1), batch.targets.flatten())
        optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(weights.values(), settings.clip)
        optimiser.step()
        yield float(loss.detach())


@torch.no_grad()
def check_same(
    model: nn.Module, weights: dict[str, Tensor], config: ModelConfig, ids: Tensor
) -> None:
    wanted, found = model.eval()(ids), plain_logits(weights, config, ids)
    torch.testing.assert_close(found, wanted, atol=1e-4, rtol=1e-4)


def our_loop(text: Text, settings: TrainingSettings) -> Iterator[float]:
    config = config_of(text)
    task = Task(fresh_model(config, 0), None, batches_of(text, settings, config), [])
    yield from (e.loss for e in train_task(task, settings) if isinstance(e, Stepped))


def settings_of(steps: int, optimiser: str) -> TrainingSettings:
    fields = SETTINGS | {"steps": steps} | LONG_SETTINGS | {"optimiser": optimiser}
    if optimiser == "adamw":  # as the plain loop
        fields.pop("matrix_learning_rate")
        fields |= {"precision": "float32"}
    return TrainingSettings.from_fields(fields)


def plain(text: Text, steps: int) -> str:
    """Both loops side by side, a step of each in turn."""
    loops = {
        "plain torch, AdamW": plain_loop(text, settings_of(steps, "adamw")),
        "clearhead, AdamW": our_loop(text, settings_of(steps, "adamw")),
        "clearhead, Muon, precision auto": our_loop(text, settings_of(steps, "muon")),
    }
    took: dict[str, list[tuple[float, float]]] = {name: [] for name in loops}
    losses: dict[str, float] = {}
    for step in range(steps):
        for name, loop in loops.items():
            spent, losses[name] = timed(loop.__next__)
            if step >= WARM:
                took[name].append(spent)
    first = [median(times) for times in zip(*took["plain torch, AdamW"], strict=True)]
    rows = []
    for name, times in took.items():
        wall, processor = (median(column) for column in zip(*times, strict=True))
        rows.append([name, f"{1e3 * wall:.0f} ms", f"{wall / first[0]:.2f}",
                     f"{1e3 * processor:.0f} ms", f"{processor / first[1]:.2f}",
                     f"{losses[name]:.3f}"])  # fmt: skip
    header = ["", "a step", "of plain", "of the processor", "of plain", f"loss, step {steps}"]
    return f"{machine()}. {steps - WARM} steps of 2,048 tokens each, in turns.\n\n" + table(
        header, rows
    )


def timed(work: Callable[[], float]) -> tuple[tuple[float, float], float]:
    wall, processor = time.perf_counter(), time.process_time()
    found = work()
    return (time.perf_counter() - wall, time.process_time() - processor), found


def beside(data: Path, steps: int) -> str:
    """Steps alone and beside others, with threads that wait in two ways."""
    waiting = {"torch's own": {}, "clearhead train's": {"GOMP_SPINCOUNT": SPINS}}
    rows = []
    for others in (0, BUSY):
        busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(others)]
        try:
            for name, variables in waiting.items():
                rows.append([str(others), name, *in_process(data, steps, variables)])
        finally:
            for one in busy:
                one.kill()
    header = ["other programs", "threads wait", "a step", "slowest", "of the processor"]
    return f"{machine()}. {steps - WARM} steps of 2,048 tokens.\n\n" + table(header, rows)


def in_process(data: Path, steps: int, variables: dict[str, str]) -> list[str]:
    unset = {name: value for name, value in os.environ.items() if "GOMP" not in name}
    command = [sys.executable, __file__, "here", "--steps", str(steps), "--data", str(data)]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, env=unset | variables
    )
    return done.stdout.strip().splitlines()[-1].split(";")


def here(text: Text, steps: int) -> str:
    """Some steps in this process: median, slowest, and the processor's time for each."""
    loop = our_loop(text, settings_of(steps, "muon"))
    spent = [timed(loop.__next__)[0] for _ in range(steps)][WARM:]
    wall, processor = zip(*spent, strict=True)
    mean = math.fsum(processor) / len(processor)
    return f"{median(wall):.2f} s;{max(wall):.2f} s;{mean:.2f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=["plain", "beside", "here"])
    parser.add_argument("--steps", type=int, default=22)
    parser.add_argument("--data", type=Path, default=SHAKESPEARE, help="tinyshakespeare's text")
    parser.add_argument("--publish", action="store_true", help="write into docs/benchmarks.md")
    options = parser.parse_args()
    path = corpus_at(options.data, "tinyshakespeare")
    if options.what == "beside":
        said = beside(path, options.steps)
    else:
        said = (plain if options.what == "plain" else here)(Text.read(path), options.steps)
    print(said)
    if options.publish and options.what != "here":
        publish(f"training steps {options.what}", said)


if __name__ == "__main__":
    main()
