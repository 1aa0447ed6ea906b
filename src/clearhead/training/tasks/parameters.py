"""Which parameters a run changes: all, all but frozen ones, or those of LoRA adapters alone.

``freeze`` and ``lora_targets`` are lists of words and patterns, with commas between:

================  =============================================================================
``embeddings``    token, position and segment embeddings (a tied output matrix is one of them)
``first 4``       the first four layers, of the encoder and of the decoder
``attention``     the attention of all layers; ``feed-forward`` likewise; ``query``, ``down`` … one
``*.norm.*``      every parameter whose name fits, as in a file name; ``ch.load(…).model`` has them
================  =============================================================================
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import fnmatchcase

from torch import nn

from clearhead.checkpoints.adapters.adapter import LowRank
from clearhead.errors import ConfigError
from clearhead.layers.linear import Linear
from clearhead.layers.low_rank import LowRankLinear
from clearhead.training.random_seed import seeded_for
from clearhead.training.settings import TrainingSettings

FIRST = re.compile(r"first (\d{1,5})")
LAYER = re.compile(r"\bblocks\.(\d+)\.")
PROJECTIONS = ("query", "key", "value", "output")
MAPS = ("gate", "up", "down")


def train_only(model: nn.Module, settings: TrainingSettings) -> None:
    """Let gradients flow to the parameters that the settings name, and to no others.

    Raises:
        ConfigError: a pattern fits no parameter, or nothing is left to train.
    """
    names = [name for name, _ in model.named_parameters()]
    frozen = chosen(settings.freeze, names, "freeze")
    adapted = any(isinstance(module, LowRankLinear) for module in model.modules())
    for name, parameter in model.named_parameters():
        of_adapter = "low_rank_" in name
        parameter.requires_grad_(of_adapter if adapted else name not in frozen)
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ConfigError("freeze leaves nothing to train.", hint="freeze fewer parameters.")


def adapt(model: nn.Module, settings: TrainingSettings) -> None:
    """Put adapters beside the matrices that ``lora_targets`` names, if ``lora`` asks for them.

    Raises:
        ConfigError: a pattern fits no matrix of a layer.
    """
    if settings.lora is None:
        return
    linear = {
        f"{name}.weight": module
        for name, module in model.named_modules()
        if isinstance(module, Linear) and LAYER.search(name + ".")
    }
    alpha = 2.0 * settings.lora if settings.lora_alpha is None else settings.lora_alpha
    with seeded_for("adapters", settings.seed):
        for name in sorted(chosen(settings.lora_targets, list(linear), "lora_targets")):
            adapted = LowRankLinear(
                linear[name], rank=settings.lora, alpha=alpha, dropout=settings.lora_dropout
            )
            owner, _, last = name.removesuffix(".weight").rpartition(".")
            setattr(model.get_submodule(owner), last, adapted)


def adapters_of(model: nn.Module) -> dict[str, LowRank]:
    """The adapters of a model, by the names of the parameters that they are added to."""
    return {
        f"{name}.weight": LowRank(module.low_rank_a, module.low_rank_b, module.scale)
        for name, module in model.named_modules()
        if isinstance(module, LowRankLinear)
    }


def chosen(patterns: str, names: list[str], setting: str) -> set[str]:
    """The names that a list of words and patterns chooses.

    >>> names = ["stack.blocks.0.attention.query.weight", "stack.blocks.1.feed_forward.up.weight"]
    >>> chosen("first 1", names, "freeze")
    {'stack.blocks.0.attention.query.weight'}

    Raises:
        ConfigError: one of them fits no name.
    """
    found: set[str] = set()
    for pattern in filter(None, map(str.strip, patterns.split(","))):
        fits = _test_of(pattern)
        fitting = {name for name in names if fits(name)}
        if not fitting:
            raise ConfigError(
                f"{setting}: {pattern[:80]!r} fits no parameter.",
                hint="embeddings, first 4, attention, feed-forward, query …, or a pattern such as "
                f"{names[-1]!r}.",
            )
        found |= fitting
    return found


def _test_of(pattern: str) -> Callable[[str], bool]:
    first = FIRST.fullmatch(pattern)
    if first is not None:
        return lambda name: _layer(name) < int(first[1])
    if pattern in WORDS:
        return lambda name: any(fnmatchcase(name, known) for known in WORDS[pattern])
    return lambda name: fnmatchcase(name, pattern)


def _layer(name: str) -> float:
    found = LAYER.search(name)
    return float("inf") if found is None else int(found[1])


WORDS: dict[str, tuple[str, ...]] = {
    "all": ("*",),
    "embeddings": ("*embedding.*",),
    "attention": ("*blocks.*.attention.*", "*blocks.*.cross_attention.*"),
    "feed-forward": ("*blocks.*.feed_forward.*",),
    **{name: (f"*attention.{name}.*",) for name in PROJECTIONS},
    **{name: (f"*feed_forward.{name}.*",) for name in MAPS},
}
