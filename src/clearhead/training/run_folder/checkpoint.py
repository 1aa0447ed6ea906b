"""Checkpoints of a run: weights, optimiser state and progress.

One safetensors file holds all of it and appears by one rename: whenever a run is cut off, the
newest file there is whole. Its checksum is inside, so that a flipped bit is noticed. The next
step's batch and random numbers follow from the seed and the step, so the step is all there is to
know about both.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from clearhead.checkpoints.safetensors.file import SafetensorsFile, write_safetensors
from clearhead.errors import CheckpointError
from clearhead.files.json_file import parse_json
from clearhead.training.run_folder.checksum import DamagedError, checksum_of_tensors
from clearhead.training.run_folder.progress import Facts
from clearhead.training.run_folder.schema import from_json

FACTS, CHECKSUM = "clearhead.training", "clearhead.sha256"
FILE = re.compile(r"step-(\d{8,18})\.safetensors")
DAMAGED = ".damaged"
KINDS = ("model", "optimiser")


@dataclass(frozen=True)
class Checkpoint:
    """The content of one checkpoint file."""

    weights: dict[str, Tensor]
    optimiser: dict[str, Tensor]
    facts: Facts

    @property
    def step(self) -> int:
        """The number of steps that the run had made."""
        return self.facts.progress.step


class Checkpoints:
    """The checkpoints in a folder, by step."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def steps(self) -> list[int]:
        """The steps that have a checkpoint, in order."""
        if not self.folder.is_dir():
            return []
        found = (FILE.fullmatch(path.name) for path in self.folder.iterdir())
        steps = sorted(int(match[1]) for match in found if match is not None)
        return [step for step in steps if self.path(step).exists()]

    def path(self, step: int) -> Path:
        """The path of the checkpoint of a step."""
        return self.folder / f"step-{step:08}.safetensors"

    def write(self, checkpoint: Checkpoint) -> Path:
        """Write a checkpoint; it is there whole, or not at all."""
        self.folder.mkdir(parents=True, exist_ok=True)
        tensors = {f"model/{name}": tensor for name, tensor in checkpoint.weights.items()}
        tensors |= {f"optimiser/{name}": tensor for name, tensor in checkpoint.optimiser.items()}
        facts = json.dumps(dataclasses.asdict(checkpoint.facts))
        path = self.path(checkpoint.step)
        write_safetensors(
            path, tensors, {FACTS: facts, CHECKSUM: checksum_of_tensors(tensors, facts)}
        )
        return path

    def read(self, step: int) -> Checkpoint:
        """The checkpoint of a step, every byte of it checked.

        Raises:
            CheckpointError: it is damaged, or no checkpoint of a training run.
        """
        path = self.path(step)
        file = SafetensorsFile(path)
        tensors = {name: file.tensor(name) for name in file.names()}
        said = file.metadata.get(FACTS, "")
        if CHECKSUM not in file.metadata:
            raise CheckpointError(f"{path} is not the checkpoint of a training run.")
        if checksum_of_tensors(tensors, said) != file.metadata[CHECKSUM]:
            raise DamagedError(f"{path} is damaged: its checksum is not that of its content.")
        facts = _facts(path, said)
        if facts.progress.step != step:
            raise CheckpointError(f"{path} is the checkpoint of step {facts.progress.step}.")
        return Checkpoint(*_sorted(path, tensors), facts)

    def facts(self, step: int) -> Facts:
        """What the checkpoint of a step says beside its tensors, which are not read."""
        path = self.path(step)
        return _facts(path, SafetensorsFile(path).metadata.get(FACTS, ""))

    def keep(self, steps: Iterable[int]) -> None:
        """Remove every checkpoint but these."""
        kept = set(steps)
        for step in self.steps():
            if step not in kept:
                self.path(step).unlink(missing_ok=True)

    def set_aside(self, step: int) -> Path:
        """Rename a damaged checkpoint, so that it is neither read nor counted; its new path."""
        path = self.path(step)
        aside = path.with_name(path.name + DAMAGED)
        with suppress(OSError):  # on a disk that cannot be written, it stays where it is
            path.replace(aside)
        return aside


def averaged(checkpoints: Checkpoints, steps: Iterable[int]) -> dict[str, Tensor]:
    """The mean of the weights at several steps (as in Vaswani et al. 2017, section 6.1)."""
    sums: dict[str, Tensor] = {}
    steps = list(steps)
    for step in steps:
        for name, tensor in checkpoints.read(step).weights.items():
            sums[name] = sums.get(name, torch.zeros((), dtype=torch.float64)) + tensor.double()
    return {name: (total / len(steps)).float() for name, total in sums.items()}


def _facts(path: Path, text: str) -> Facts:
    try:
        return from_json(Facts, parse_json(text), str(path))
    except ValueError as error:
        raise CheckpointError(f"{path} is not the checkpoint of a training run: {error}.") from None


def _sorted(path: Path, tensors: dict[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    held: dict[str, dict[str, Tensor]] = {kind: {} for kind in KINDS}
    for name, tensor in tensors.items():
        kind, _, rest = name.partition("/")
        if kind not in held:
            raise CheckpointError(f"{path} holds {name[:80]!r}, which no checkpoint has.")
        held[kind][rest] = tensor
    return held["model"], held["optimiser"]
