"""The engine's compiled functions, called one by one on the memory of a real step."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import torch
from torch import Tensor

from clearhead.engine.compiled import step_code
from clearhead.engine.engine import Engine
from clearhead.engine.kernels.structures import GROUP, Step
from clearhead.engine.runner import EngineRunner
from clearhead.engine.workspace import split_into_blocks
from clearhead.models.config import ModelConfig
from clearhead.models.decoder import Decoder

LARGEST = np.float32(127 * 256)


def call(name: str, *arguments: int) -> int:
    """Call a compiled part of the engine by its name; what a void function returns is garbage."""
    address = step_code().addresses[f"clearhead_engine_{name}"]
    return int(_function(address, len(arguments))(*arguments))


def _function(address: int, count: int) -> Any:
    return ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * count)(address)


def decoder(**changes: Any) -> Decoder:
    """A tiny decoder with random weights, norms and biases."""
    fields: dict[str, Any] = {
        "kind": "decoder", "vocab": 53, "context": 401, "model": 44, "layers": 2, "heads": 6,
        "kv_heads": 2, "key_dim": 10, "value_dim": 37, "feed_forward": 71, "gated": True,
    }  # fmt: skip
    torch.manual_seed(17)
    model = Decoder(ModelConfig(**fields | changes)).eval().requires_grad_(False)
    for parameter in model.parameters():
        if parameter.ndim == 1:
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


class PreparedStep:
    """A runner's step that is ready to run: new tokens after ``lengths`` tokens in the cache."""

    def __init__(self, model: Decoder, rows: list[list[int]], lengths: list[int]) -> None:
        self.runner = EngineRunner(Engine(model, threads=1))
        self.engine, self.config = self.runner.engine, model.config
        self.runner._fit(len(rows), max(map(sum, zip(lengths, map(len, rows), strict=True))))
        self.workspace, self.step = self.runner._workspace, self.runner._step
        self.workspace.reserve_thread_memory(self.step, 2)
        (block,) = split_into_blocks(rows, lengths)
        self.workspace.set_tokens(self.step, block, rows, every=False)
        self.workspace.clear_counters(self.step)
        self.address = ctypes.addressof(self.step)
        self.attention = ctypes.addressof(self.runner._attentions)
        self.feed_forward = ctypes.addressof(self.runner._feed_forwards)

    @property
    def fields(self) -> Step:
        """The structure itself."""
        return self.step

    def memory(self, name: str) -> Tensor:
        """A shared tensor of the workspace: states, normed, inputs, projected, mixed, hidden."""
        return self.workspace._shared[name]

    def fill(self, name: str) -> Tensor:
        """Random numbers in a shared tensor; returns a copy."""
        memory = self.memory(name)
        memory.copy_(torch.randn(memory.shape))
        return memory.clone()

    def vectors(self, name: str, groups: int, tokens: int) -> Tensor:
        """The quantised vectors of so many tokens in a shared tensor, dequantised."""
        return dequantised_vectors(self.memory(name).flatten().numpy(), groups, tokens)


def quantised_vectors(values: Any) -> Any:
    """The vectors of tokens as the kernels quantise them, computed by NumPy: the bytes."""
    values = np.asarray(values, np.float32)
    groups = values.reshape(len(values), -1, GROUP)
    largest = np.abs(groups).max(-1, keepdims=True)
    inverse = np.divide(LARGEST, largest, out=np.zeros_like(largest), where=largest > 0)
    integers = np.rint(groups * inverse).astype(np.int32)
    total = integers.sum(-1)
    scale = (largest / LARGEST)[..., 0]
    halves = -128 * integers.reshape(*scale.shape, 2, GROUP // 2).sum(-1)
    tails = (
        scale, scale * total.astype(np.float32), (-128 * total).astype(np.int32),
        halves[..., 0].astype(np.int32), halves[..., 1].astype(np.int32),
    )  # fmt: skip
    split = _split(integers).reshape(len(values), scale.shape[1], -1).transpose(1, 0, 2)
    parts = [split.reshape(scale.shape[1], -1)]
    parts += [np.ascontiguousarray(tail.T).view(np.uint8) for tail in tails]
    return np.concatenate([np.concatenate(parts, 1).flatten(), groups.flatten().view(np.uint8)])


def dequantised_vectors(stored: Any, groups: int, tokens: int) -> Tensor:
    """The numbers of the quantised vectors of so many tokens."""
    size = 2 * GROUP + 5 * 4  # bytes of a group of a token
    apart = stored[: size * groups * tokens].reshape(groups, size * tokens)
    integers = _joined(apart[:, : 2 * GROUP * tokens].flatten()).reshape(groups, tokens, GROUP)
    scales = apart[:, 2 * GROUP * tokens :][:, : 4 * tokens].copy().view(np.float32)
    numbers = integers * scales[..., None].astype(np.float64)
    return torch.from_numpy(numbers.transpose(1, 0, 2).reshape(tokens, -1).copy())


def _splits_bytes() -> bool:
    from clearhead.engine.kernels.numbers import products

    return products._shift == 8


def _split(integers: Any) -> Any:
    quads = integers.reshape(-1, 4)
    if not _splits_bytes():
        return quads[:, [0, 2, 1, 3]].astype(np.int16).reshape(-1).view(np.uint8)
    upper = (quads + 128) >> 8
    return (
        np.concatenate([upper, quads - 256 * upper], 1).astype(np.int8).reshape(-1).view(np.uint8)
    )


def _joined(stored: Any) -> Any:
    if not _splits_bytes():
        return stored.copy().view(np.int16).reshape(-1, 4)[:, [0, 2, 1, 3]].astype(np.float64)
    parts = stored.copy().view(np.int8).reshape(-1, 2, 4).astype(np.float64)
    return 256 * parts[:, 0] + parts[:, 1]
