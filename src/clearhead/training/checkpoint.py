"""Checkpoints of a run: weights, optimiser state and progress.

One safetensors file holds all of it and appears by one rename: whenever a run is cut off, the
newest file there is whole. The next step's batch and random numbers follow from the seed and the
step, so the step is all there is to know about both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from clearhead.checkpoints.safetensors.file import SafetensorsFile, write_safetensors
from clearhead.errors import CheckpointError

FACTS = "clearhead.training"
FILE = re.compile(r"step-(\d{8})\.safetensors")


@dataclass(frozen=True)
class Checkpoint:
    """The content of one checkpoint file."""

    step: int
    weights: dict[str, Tensor]
    optimiser: dict[str, Tensor]
    facts: dict[str, Any]


class Checkpoints:
    """The checkpoints in a folder, by step."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def steps(self) -> list[int]:
        """The steps that have a checkpoint, in order."""
        if not self.folder.is_dir():
            return []
        found = (FILE.fullmatch(path.name) for path in self.folder.iterdir())
        return sorted(int(match[1]) for match in found if match is not None)

    def path(self, step: int) -> Path:
        """The path of the checkpoint of a step."""
        return self.folder / f"step-{step:08}.safetensors"

    def write(self, checkpoint: Checkpoint) -> Path:
        """Write a checkpoint; it is there whole, or not at all."""
        self.folder.mkdir(parents=True, exist_ok=True)
        tensors = {f"model/{name}": tensor for name, tensor in checkpoint.weights.items()}
        tensors |= {f"optimiser/{name}": tensor for name, tensor in checkpoint.optimiser.items()}
        path = self.path(checkpoint.step)
        write_safetensors(path, tensors, {FACTS: json.dumps(checkpoint.facts)})
        return path

    def read(self, step: int) -> Checkpoint:
        """The checkpoint of a step."""
        file = SafetensorsFile(self.path(step))
        try:
            facts = json.loads(file.metadata[FACTS])
        except (KeyError, ValueError):
            raise CheckpointError(
                f"{file.path} is not the checkpoint of a training run.",
                hint="remove it; the one before it will be used.",
            ) from None
        held: dict[str, dict[str, Tensor]] = {"model": {}, "optimiser": {}}
        for name in file.names():
            kind, _, rest = name.partition("/")
            held.setdefault(kind, {})[rest] = file.tensor(name)
        return Checkpoint(step, held["model"], held["optimiser"], facts)

    def keep(self, steps: Iterable[int]) -> None:
        """Remove every checkpoint but these."""
        kept = set(steps)
        for step in self.steps():
            if step not in kept:
                self.path(step).unlink(missing_ok=True)


def averaged(checkpoints: Checkpoints, steps: list[int]) -> dict[str, Tensor]:
    """The mean of the weights at several steps (as in Vaswani et al. 2017, section 6.1)."""
    sums: dict[str, Tensor] = {}
    for step in steps:
        for name, tensor in checkpoints.read(step).weights.items():
            sums[name] = sums.get(name, torch.zeros((), dtype=torch.float64)) + tensor.double()
    return {name: (total / len(steps)).float() for name, total in sums.items()}
