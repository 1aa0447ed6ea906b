"""From our matrices to those of PEFT's files, and back.

Ours has one matrix each for queries, keys and values. A family such as GPT-2 has all three in one;
then A and B of that one are put together: B·A of the parts, one below the other.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from clearhead.checkpoints.adapters.adapter import LowRank
from clearhead.checkpoints.adapters.base import shared_words
from clearhead.checkpoints.adapters.config_file import AdapterConfig
from clearhead.errors import CheckpointError
from clearhead.models.config import ModelConfig
from clearhead.models.families.family import Family, Source, family_named

START, A, B = "base_model.model.", ".lora_A.weight", ".lora_B.weight"
NAMED = ".default"  # older files have the adapter's name in each tensor's


def module_of(source: Source, family: Family, config: ModelConfig) -> str:
    """The name of a matrix's module in the model of transformers that our config makes."""
    name = source.name.removesuffix(".weight")
    bare = config.kind == "encoder" and config.head in ("none", "embedding")
    return name.removeprefix(family.prefix) if bare else name


def to_theirs(matrices: Mapping[str, LowRank], config: ModelConfig) -> dict[str, LowRank]:
    """Adapters by the names of transformers' modules; parts of one matrix are put together."""
    family = family_named(config.family)
    sources = family.sources(config)
    groups: dict[str, dict[int, LowRank]] = {}
    counts: dict[str, int] = {}
    for ours, low_rank in matrices.items():
        source = sources[ours]
        module = module_of(source, family, config)
        groups.setdefault(module, {})[source.part] = low_rank
        counts[module] = source.parts
    return {module: _joined(parts, counts[module]) for module, parts in groups.items()}


def _joined(parts: dict[int, LowRank], count: int) -> LowRank:
    """The adapter of a matrix that holds ``count`` of ours; missing ones are 0."""
    if count == 1:
        return parts[0]
    ordered = sorted(parts.items())
    first = ordered[0][1]
    shared = len(parts) == count and all(
        part.scale == first.scale and torch.equal(part.a, first.a) for part in parts.values()
    )
    if shared:
        return LowRank(first.a, torch.cat([part.b for _, part in ordered]), first.scale)
    rows, rank = first.b.shape[0], sum(part.a.shape[0] for part in parts.values())
    b, column = first.b.new_zeros(count * rows, rank), 0
    for number, part in ordered:
        width = part.a.shape[0]
        factor = part.scale / first.scale
        b[number * rows : (number + 1) * rows, column : column + width] = factor * part.b
        column += width
    return LowRank(torch.cat([part.a for _, part in ordered]), b, first.scale)


def from_theirs(
    tensors: Mapping[str, Tensor], described: AdapterConfig, config: ModelConfig, where: str
) -> dict[str, LowRank]:
    """Adapters by the names of our parameters.

    Raises:
        CheckpointError: a tensor is not of an adapter, its other half is missing, shapes do not
            fit, or the model has no such matrix; it names them.
    """
    modules = _modules(tensors, where)
    family = family_named(config.family)
    places: dict[str, list[tuple[str, Source]]] = {}
    for ours, source in family.sources(config).items():
        for name in {source.name, source.name.removeprefix(family.prefix)}:
            places.setdefault(name.removesuffix(".weight"), []).append((ours, source))
    unknown = [module for module in modules if module not in places]
    if unknown:
        raise CheckpointError(
            f"{where} adapts {shared_words(unknown)}, which a {config.family} model does not have.",
            hint="is it an adapter of this model?",
        )
    found: dict[str, LowRank] = {}
    for module, (a, b) in modules.items():
        scale = described.scale(module, a.shape[0])
        for ours, source in places[module]:
            if ours.endswith(".weight"):
                found[ours] = LowRank(a, _part(b, source), scale)
    return found


def _part(b: Tensor, source: Source) -> Tensor:
    size = b.shape[0] // source.parts
    return b[source.part * size : (source.part + 1) * size].contiguous()


def _modules(tensors: Mapping[str, Tensor], where: str) -> dict[str, tuple[Tensor, Tensor]]:
    """A and B of each module."""
    halves: dict[str, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        plain = name.replace(NAMED + ".weight", ".weight")
        ending = next((end for end in (A, B) if plain.endswith(end)), None)
        if ending is None or not plain.startswith(START):
            raise CheckpointError(f"{where} holds {name[:80]!r}; adapters of matrices are known.")
        module = plain.removeprefix(START).removesuffix(ending)
        halves.setdefault(module, {})[ending] = tensor
    for module, pair in halves.items():
        if len(pair) != 2:
            raise CheckpointError(f"{where} holds only one of the two matrices of {module[:80]!r}.")
        if any(t.ndim != 2 or not t.is_floating_point() for t in pair.values()) or (
            pair[A].shape[0] != pair[B].shape[1]
        ):
            shapes = " and ".join(str(tuple(tensor.shape)) for tensor in pair.values())
            raise CheckpointError(f"{where}: the matrices of {module[:80]!r} do not fit: {shapes}.")
        if not all(bool(torch.isfinite(tensor).all()) for tensor in pair.values()):
            raise CheckpointError(f"{where}: the matrices of {module[:80]!r} are not finite.")
    return {module: (pair[A], pair[B]) for module, pair in halves.items()}
