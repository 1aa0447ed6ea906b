"""adapter_config.json, as PEFT reads and writes it: a field is read, harmless or refused."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clearhead.arguments import shown
from clearhead.checkpoints.adapters.base import CONFIG
from clearhead.errors import CheckpointError
from clearhead.files.json_file import read_json

HARMLESS = {
    "r": "the matrices have their ranks",
    "rank_pattern": "the matrices have their ranks",
    "target_modules": "the matrices have their names",
    "exclude_modules": "the matrices have their names",
    "layers_to_transform": "the matrices have their names",
    "layers_pattern": "the matrices have their names",
    "lora_dropout": "only of training",
    "inference_mode": "only of training",
    "runtime_config": "only of training",
    "ensure_weight_tying": "only of training",
    "fan_in_fan_out": "the family says how its matrices lie",
    "task_type": "the model's own config.json says its kind",
    "auto_mapping": "classes of PEFT",
    "revision": "the checksum says which base it is",
    "peft_version": "a remark",
    "eva_config": "how the matrices began",
    "loftq_config": "how the matrices began",
    "corda_config": "how the matrices began",
    "lora_ga_config": "how the matrices began",
    "qalora_group_size": "counts only with use_qalora",
    "megatron_core": "counts only with megatron_config",
}
READ = (
    "peft_type", "base_model_name_or_path", "lora_alpha", "alpha_pattern", "use_rslora", "bias",
    "init_lora_weights",
)  # fmt: skip
NAME = re.compile(r"[\w.]+")
OTHER_BASES = ("pissa", "olora", "corda", "loftq", "lora_ga")  # these change the base's weights


@dataclass(frozen=True)
class AdapterConfig:
    """What adapter_config.json says about the numbers of an adapter."""

    base: str
    alpha: float
    alphas: Mapping[str, float] = field(default_factory=dict)  # of some modules, by pattern
    root: bool = False  # divide by √rank instead of the rank (rsLoRA)

    def scale(self, module: str, rank: int) -> float:
        """What B·A of a module is multiplied with.

        >>> AdapterConfig("base", 16.0, {"q_proj": 4.0}).scale("model.layers.0.q_proj", 8)
        0.5
        """
        patterns = (alpha for pattern, alpha in self.alphas.items() if _matches(pattern, module))
        return next(patterns, self.alpha) / (math.sqrt(rank) if self.root else rank)


def read_adapter_config(folder: Path) -> AdapterConfig:
    """The config of the adapter in a folder.

    Raises:
        CheckpointError: it is no adapter that adds low-rank matrices to a model's; a field asks for
            something that is not known; or a value is of a wrong kind.
    """
    path = folder / CONFIG
    fields = read_json(path)
    _refuse(path, fields)
    alphas = fields.get("alpha_pattern") or {}
    numbers = [fields.get("lora_alpha"), *(alphas.values() if isinstance(alphas, dict) else [None])]
    base = fields.get("base_model_name_or_path")
    if not all(map(_is_number, numbers)) or not isinstance(base, str | None):
        raise CheckpointError(
            f"{path}: lora_alpha and alpha_pattern must be numbers, base_model_name_or_path a text."
        )
    for pattern in alphas:
        if not NAME.fullmatch(pattern):
            raise CheckpointError(
                f"{path}: alpha_pattern has {shown(pattern)}; names of modules are known, regular "
                "expressions are not."
            )
    return AdapterConfig(
        base or "", float(fields["lora_alpha"]),
        {name: float(alpha) for name, alpha in alphas.items()}, bool(fields.get("use_rslora")),
    )  # fmt: skip


def _refuse(path: Path, fields: Mapping[str, Any]) -> None:
    if fields.get("peft_type") != "LORA":
        raise CheckpointError(
            f"{path} describes an adapter of the kind {shown(fields.get('peft_type'))}; LORA is "
            "known."
        )
    for name, value in fields.items():
        if name not in HARMLESS and name not in READ and value:
            raise CheckpointError(f"{path}: {name} is {shown(value)}, which is not known.")
    if fields.get("bias", "none") != "none":
        raise CheckpointError(f"{path}: bias is {shown(fields['bias'])}: trained biases are not "
                              "known.")  # fmt: skip
    begun = fields.get("init_lora_weights")
    if isinstance(begun, str) and begun.lower().startswith(OTHER_BASES):
        raise CheckpointError(
            f"{path}: init_lora_weights is {shown(begun)}: such an adapter is for a changed base.",
            hint="PEFT converts it when it saves: path_initial_model_for_weight_conversion.",
        )


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < 2**62 and math.isfinite(value)


def _matches(pattern: str, module: str) -> bool:
    """As PEFT matches: a module's whole name, or the end of it."""
    return module == pattern or module.endswith(f".{pattern}")
