"""The processes of one run: which of them this is, and what they have to tell each other.

``torchrun`` starts them and says in the environment who is who. Each computes its share of every
batch's rows; gradients are averaged over all of them (DDP), or weights, gradients and optimiser
state are cut into shards, too (FSDP2, for models that do not fit).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.nn.parallel import DistributedDataParallel

from clearhead.errors import ClearheadError
from clearhead.layers.block import Block
from clearhead.training.objectives import Objective

PATIENCE = timedelta(minutes=30)  # how long one process may wait for another


class LostProcessError(ClearheadError):
    """Another process of the run is gone."""


@dataclass(frozen=True)
class Processes:
    """``rank`` of ``count`` processes; ``sharded`` cuts the model over them."""

    rank: int = 0
    count: int = 1
    sharded: bool = False

    @property
    def writes(self) -> bool:
        """Whether this process writes files and talks: the first one does."""
        return self.rank == 0

    def wrap(self, objective: Objective, device: torch.device) -> nn.Module:
        """The objective, with gradients that are averaged over all processes."""
        if self.count == 1:
            return objective
        if not self.sharded:
            devices = [device.index] if device.type == "cuda" else None
            return DistributedDataParallel(objective, device_ids=devices)
        mesh = init_device_mesh(device.type, (self.count,))
        for module in objective.modules():
            if isinstance(module, Block):
                fully_shard(module, mesh=mesh)
        fully_shard(objective, mesh=mesh)
        return objective

    @contextmanager
    def silent(self, wrapped: nn.Module, silent: bool) -> Iterator[None]:
        """Inside, if ``silent``, gradients stay here: another part of the batch is to come."""
        if isinstance(wrapped, DistributedDataParallel) and silent:
            with wrapped.no_sync():
                yield
        elif isinstance(wrapped, FSDPModule):
            wrapped.set_requires_gradient_sync(not silent)
            yield
        else:
            yield

    def sum(self, *values: float) -> list[float]:
        """Each value, summed over all processes."""
        if self.count == 1:
            return list(values)
        numbers = torch.tensor(values, dtype=torch.float64, device=_device_of_talk())
        with explained():
            distributed.all_reduce(numbers)
        return numbers.tolist()

    def agree(self, value: float) -> float:
        """What the first process says."""
        return self.sum(value if self.rank == 0 else 0.0)[0]


ALONE = Processes()


@contextmanager
def together(device: torch.device, *, sharded: bool = False) -> Iterator[Processes]:
    """The processes that torchrun started, connected; without torchrun, just this one."""
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        yield ALONE
        return
    distributed.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=PATIENCE)
    try:
        with explained():
            yield Processes(distributed.get_rank(), count, sharded)
    finally:
        distributed.destroy_process_group()


@contextmanager
def explained() -> Iterator[None]:
    """A broken connection means that another process ended: say so, and what to do."""
    try:
        yield
    except (RuntimeError, distributed.DistError) as error:
        if not _lost(error):
            raise
        raise LostProcessError(
            "another process of this run has ended, so this one cannot go on.",
            hint="the last checkpoint is whole: start the same command with --resume, with as many "
            "processes as you like.",
        ) from error


def _lost(error: Exception) -> bool:
    said = str(error).lower()
    signs = ("connection closed", "connection reset", "broken pipe", "timed out", "gloo", "nccl")
    return isinstance(error, distributed.DistError) or any(sign in said for sign in signs)


def _device_of_talk() -> Any:
    return "cuda" if distributed.get_backend() == "nccl" else "cpu"
