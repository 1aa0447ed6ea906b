"""Estimates of a training run on many machines: memory, communication and time.

The assumptions:

- A step costs 6 operations for each parameter and token (2 forward, 4 backward; Kaplan et al. 2020)
  and 12 · layers · width · length for each token in attention. Of an encoder-decoder, source and
  target tokens each pass through about half of the parameters, which is counted as such.
- Weights, gradients and AdamW's two moments are float32: 16 bytes for each parameter; products are
  computed at the machine's rate for bfloat16 times ``utilisation``.
- A block keeps about 34 numbers of 2 bytes for each token and unit of width (Korthikanti et al.
  2022, with attention that keeps no map).
- DDP sends each gradient twice around a ring; FSDP gathers the weights twice and scatters the
  gradients once. Half of the communication overlaps with computation.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

import torch

from clearhead.errors import InputError
from clearhead.models.build import build
from clearhead.models.config import ModelConfig

BYTES_PER_PARAMETER = 16  # weight, gradient, two moments
BYTES_PER_ACTIVATION = 34 * 2  # for each token, block and unit of width
OVERLAP = 0.5  # share of communication that overlaps with computation
DAY = 86_400.0


@dataclass(frozen=True)
class Machine:
    """The capabilities of one machine."""

    name: str
    operations: int | float  # in a second, in the precision of training
    memory: int | float  # bytes
    network: int | float  # bytes in a second, to the others
    utilisation: float = 0.4  # share of the operations that training reaches


LAPTOP = Machine("two CPU cores", 170e9, 24e9, 125e6, 0.6)
SERVER = Machine("a server with 64 CPU cores", 5.4e12, 256e9, 3.1e9, 0.5)
ACCELERATOR = Machine("an accelerator of 312 Tflop/s", 312e12, 80e9, 25e9)


@dataclass(frozen=True)
class Cost:
    """The cost of a run, for each machine and in total."""

    machines: int
    memory: int | float  # bytes on each machine
    fits: bool
    sent: int | float  # bytes that each machine sends in a step
    step: float  # seconds
    days: float


def parameters_of(config: ModelConfig) -> int:
    """How many parameters a model has, counted without making them."""
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in build(config).parameters())


def operations_per_token(config: ModelConfig) -> float:
    """Forward and backward."""
    share = 0.5 if config.kind == "encoder-decoder" else 1.0
    layers = config.layers + (config.encoder_layers or 0)
    attention = 12 * layers * share * config.model * config.context
    return 6 * share * parameters_of(config) + attention


def training_cost(
    config: ModelConfig,
    *,
    tokens: int | float,
    batch_tokens: int,
    machine: Machine,
    machines: int,
    sharded: bool = False,
    accumulation: int = 1,
) -> Cost:
    """Memory, communication and time of training on ``tokens`` tokens with so many machines."""
    if machines < 1 or tokens < batch_tokens or batch_tokens < machines:
        raise InputError(
            "wanted at least one machine, one batch, and a token for each machine in it; got "
            f"{machines} machines, {tokens:g} tokens and batches of {batch_tokens}."
        )
    parameters = parameters_of(config)
    layers = config.layers + (config.encoder_layers or 0)
    at_once = batch_tokens / machines / accumulation
    state = BYTES_PER_PARAMETER * parameters / (machines if sharded else 1)
    memory = state + BYTES_PER_ACTIVATION * layers * config.model * at_once
    around = (machines - 1) / machines
    sent = (3 if sharded else 2) * around * 4 * parameters
    if sharded:
        sent *= (2 * accumulation + 1) / 3  # weights are gathered anew for each part of a batch
    rate = machine.operations * machine.utilisation * machines
    computing = operations_per_token(config) * batch_tokens / rate
    step = computing + max(0.0, sent / machine.network - OVERLAP * computing)
    days = tokens / batch_tokens * step / DAY
    return Cost(machines, memory, memory <= machine.memory, sent, step, days)


def physical_memory() -> float:
    """The memory of this machine, in bytes; infinite where the system does not tell."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return math.inf
