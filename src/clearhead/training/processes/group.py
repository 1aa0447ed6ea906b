"""The processes of one run: the rank of this one, and communication between them.

``torchrun`` starts them and sets their ranks in the environment. Each computes its share of every
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
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

from clearhead.errors import ClearheadError, InputError
from clearhead.layers.block import Block
from clearhead.training.objectives import Objective
from clearhead.training.processes.presence import Presence

TIMEOUT = timedelta(minutes=30)  # how long one process may wait for another


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
        """True in the first process: it alone writes files and reports."""
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
        numbers = torch.tensor(values, dtype=torch.float64, device=_communication_device())
        distributed.all_reduce(numbers)
        return numbers.tolist()

    def agree(self, value: float) -> float:
        """The value of the first process, in all of them."""
        return self.sum(value if self.rank == 0 else 0.0)[0]


ALONE = Processes()


def is_first_process() -> bool:
    """True in the only process, or in the first of those that torchrun started."""
    return int(os.environ.get("RANK", "0")) == 0


def device_of(name: str | torch.device) -> torch.device:
    """The device of a name; ``auto`` is CUDA where there is one, and the CPU elsewhere.

    Each process that torchrun starts on a machine gets a CUDA device of its own.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        if device.type == "cuda" and device.index is None:
            device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(
            f"there is no device {str(name)!r}: {reason}", hint="the CPU is always there: cpu."
        ) from None
    return device


@contextmanager
def together(device: torch.device, *, sharded: bool = False) -> Iterator[Processes]:
    """The processes that torchrun started, connected; without torchrun, just this one.

    Raises:
        InputError: a model is to be sharded over one process.
        LostProcessError: another process has ended; it says which.
    """
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1 and sharded:
        raise InputError(
            "a model is sharded over several processes, and there is one.",
            hint="start it with torchrun --nproc-per-node, or leave --shard (shard=True) out.",
        )
    if count == 1:
        yield ALONE
        return
    try:
        store, rank, _ = next(rendezvous("env://", timeout=TIMEOUT))
    except (ValueError, RuntimeError) as error:
        raise InputError(
            f"the {count} processes cannot be connected: {error}",
            hint="start them with torchrun, which sets what they need; or unset WORLD_SIZE.",
        ) from None
    backend = "nccl" if device.type == "cuda" else "gloo"
    distributed.init_process_group(
        backend, store=store, rank=rank, world_size=count, timeout=TIMEOUT
    )
    try:
        with Presence(store, rank, count) as presence, _explained(presence):
            yield Processes(rank, count, sharded)
    finally:
        distributed.destroy_process_group()


@contextmanager
def _explained(presence: Presence) -> Iterator[None]:
    """Turn a broken connection into an error that says which other process has ended, and why."""
    try:
        yield
    except (RuntimeError, distributed.DistError) as error:
        if not _lost(error):
            presence.leave(error)
            raise
        raise LostProcessError(
            f"{presence.who_is_gone()}, so process {presence.rank} cannot go on.",
            hint="the last checkpoint is whole: start the same command with --resume, with any "
            "number of processes.",
        ) from error
    except Exception as error:
        presence.leave(error)
        raise


def _lost(error: Exception) -> bool:
    message = str(error).lower()
    signs = ("connection closed", "connection reset", "broken pipe", "timed out", "gloo", "nccl")
    return isinstance(error, distributed.DistError) or any(sign in message for sign in signs)


def _communication_device() -> Any:
    return "cuda" if distributed.get_backend() == "nccl" else "cpu"
