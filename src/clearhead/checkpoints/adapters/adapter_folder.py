"""A folder with an adapter: adapter_config.json and adapter_model.safetensors, as PEFT has them.

The metadata of the tensor file says which model the adapter was trained on, by its checksum.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from clearhead.checkpoints.adapters.adapter import Adapter, LowRank
from clearhead.checkpoints.adapters.base import CONFIG, Base
from clearhead.checkpoints.adapters.config_file import read_adapter_config
from clearhead.checkpoints.adapters.tensor_names import START, A, B, from_theirs, to_theirs
from clearhead.checkpoints.safetensors.file import SafetensorsFile, write_safetensors
from clearhead.errors import CheckpointError
from clearhead.files.json_file import write_json
from clearhead.models.config import ModelConfig
from clearhead.models.families.family import family_named

TENSORS = "adapter_model.safetensors"
CHECKSUM = "clearhead.base_sha256"
TASKS = {"decoder": "CAUSAL_LM", "encoder-decoder": "SEQ_2_SEQ_LM", "encoder": "FEATURE_EXTRACTION"}


def write_adapter(folder: Path, adapter: Adapter, config: ModelConfig) -> None:
    """Write an adapter of the model that ``config`` describes; adapter_config.json comes last."""
    theirs = to_theirs(adapter.matrices, config)
    tensors = {}
    for module, low_rank in theirs.items():
        tensors[START + module + A] = low_rank.a.detach().float().cpu().contiguous()
        tensors[START + module + B] = low_rank.b.detach().float().cpu().contiguous()
    metadata = {"format": "pt"}
    if adapter.base.sha256 is not None:
        metadata[CHECKSUM] = adapter.base.sha256
    write_safetensors(folder / TENSORS, tensors, metadata)
    write_json(folder / CONFIG, _fields(theirs, adapter, config))


def _fields(theirs: dict[str, LowRank], adapter: Adapter, config: ModelConfig) -> dict[str, Any]:
    ranks = {module: low_rank.a.shape[0] for module, low_rank in theirs.items()}
    alphas = {module: theirs[module].scale * rank for module, rank in ranks.items()}
    (rank, alpha), _ = Counter((ranks[m], alphas[m]) for m in theirs).most_common(1)[0]
    sources = family_named(config.family).sources(config)
    masked = config.kind == "encoder" and config.head not in ("none", "embedding")
    return {
        "peft_type": "LORA",
        "task_type": None if masked else TASKS[config.kind],
        "base_model_name_or_path": adapter.base.name,
        "inference_mode": True,
        "r": rank,
        "lora_alpha": _plain(alpha),
        "lora_dropout": adapter.dropout,
        "target_modules": sorted(theirs),
        "rank_pattern": {m: r for m, r in ranks.items() if r != rank},
        "alpha_pattern": {m: _plain(a) for m, a in alphas.items() if a != alpha},
        "fan_in_fan_out": any(sources[ours].transposed for ours in adapter.matrices),
        "bias": "none",
        "modules_to_save": None,
        "init_lora_weights": True,
        "use_rslora": False,
        "use_dora": False,
    }


def _plain(number: float) -> int | float:
    return int(number) if number == int(number) else number


def read_base(folder: Path) -> Base:
    """The model that the adapter in a folder is for.

    Raises:
        CheckpointError: the files are broken, or ask for something that is not known.
    """
    return Base(read_adapter_config(folder).base, _file(folder).metadata.get(CHECKSUM))


def read_adapter(folder: Path, config: ModelConfig) -> Adapter:
    """The adapter in a folder, for the model that ``config`` describes.

    Raises:
        CheckpointError: the files are broken, or do not fit the model.
    """
    described, file = read_adapter_config(folder), _file(folder)
    tensors = {name: file.tensor(name) for name in file.names()}
    matrices = from_theirs(tensors, described, config, str(folder / TENSORS))
    return Adapter(matrices, Base(described.base, file.metadata.get(CHECKSUM)))


def _file(folder: Path) -> SafetensorsFile:
    if not (folder / TENSORS).exists():
        raise CheckpointError(f"{folder} holds an {CONFIG} and no {TENSORS}.")
    return SafetensorsFile(folder / TENSORS)
