"""Tiny models with adapters beside their matrices."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import clearhead as ch
from clearhead.checkpoints.adapters.adapter import Adapter
from clearhead.checkpoints.adapters.adapter_folder import write_adapter
from clearhead.checkpoints.adapters.base import Base, checksum_of_model
from clearhead.training.settings import TrainingSettings
from clearhead.training.tasks.parameters import adapt, adapters_of
from tests.shared.gguf_models import F16, write_gguf
from tests.shared.tiny_models import Tiny, make_reference

Adapted = Callable[..., tuple[Tiny, Any, Path]]


@pytest.fixture
def adapted(tiny: Callable[[str], Tiny], tmp_path: Path) -> Adapted:
    """A tiny model, the same with adapters of random numbers, and the folder of these."""

    def make(name: str, **settings: Any) -> tuple[Tiny, Any, Path]:
        model = tiny(name)
        changed = copy.deepcopy(model.ours)
        adapt(changed, TrainingSettings(**{"steps": 1, "lora": 3, "lora_alpha": 5.0} | settings))
        torch.manual_seed(7)
        matrices = adapters_of(changed)
        for low_rank in matrices.values():
            torch.nn.init.normal_(low_rank.b, std=0.1)
        base = Base(str(model.folder), checksum_of_model(model.folder))
        folder = tmp_path / "adapter"
        folder.mkdir()
        write_adapter(folder, Adapter(matrices, base), changed.config)
        return model, changed, folder

    return make


@pytest.fixture
def gguf_model(tmp_path: Path) -> Callable[[], Any]:
    """Loads a model whose matrices are the blocks of a GGUF file."""
    path = write_gguf(make_reference("llama"), tmp_path / "tiny.gguf", "llama", F16)
    return lambda: ch.load(path).model
