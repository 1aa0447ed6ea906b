"""``Family`` and ``Source``: what a family file declares; finding the family of a checkpoint."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import torch
from torch import Tensor

from clearhead.errors import CheckpointError
from clearhead.models.config import ModelConfig

Fields: TypeAlias = Mapping[str, Any]  # a config.json
MOST_LAYERS = 10_000  # so that a hostile config.json cannot make us count to a trillion
FAMILIES = ("llama", "gpt2", "gemma", "bert", "distilbert", "t5", "bart", "clearhead")


@dataclass(frozen=True)
class Source:
    """The place of one of our tensors in a checkpoint: its name there, and how it is stored.

    ``part`` of ``parts``: theirs holds several of ours one after another along its output axis.
    ``transposed``: theirs is (in, out), ours (out, in). ``row``: theirs is (1, n), ours (n).
    ``paired_heads``: rows of so many heads rotate with their neighbours in theirs, by halves in
    ours. ``shift``: what is added to theirs.
    """

    name: str
    part: int = 0
    parts: int = 1
    transposed: bool = False
    row: bool = False
    paired_heads: int = 0
    shift: float = 0.0

    def take(self, theirs: Tensor) -> Tensor:
        """Return our tensor, a view of theirs unless it has pairs or a shift."""
        ours = theirs.T if self.transposed and theirs.ndim == 2 else theirs
        ours = ours[0] if self.row and theirs.ndim == 2 else ours
        if self.paired_heads:
            pairs = ours.unflatten(0, (self.paired_heads, -1, 2))  # type: ignore[no-untyped-call]
            ours = pairs.transpose(1, 2).flatten(0, 2)
        if self.shift:
            ours = ours + self.shift
        if self.parts == 1:
            return ours
        size = ours.shape[0] // self.parts
        return ours[self.part * size : (self.part + 1) * size]

    def give(self, ours: list[Tensor]) -> Tensor:
        """Return their tensor, joined from the parts that are ours."""
        joined = ours[0] if len(ours) == 1 else torch.cat(ours)
        joined = joined[None] if self.row else joined
        return (joined.T if self.transposed and joined.ndim == 2 else joined).contiguous()


@dataclass(frozen=True)
class Family:
    """One family of checkpoints.

    ``read`` makes our config of a config.json, ``write`` the reverse. ``names`` gives for a config
    the place of each of our tensors; ``{i}`` in both stands for the layer. ``prefix`` may be absent
    in checkpoints of the bare model. ``ignored`` are endings of names that carry nothing to learn.
    ``older`` maps endings of names to the ones that old checkpoints have in their place.
    """

    name: str
    model_types: tuple[str, ...]
    read: Callable[[Fields], ModelConfig]
    write: Callable[[ModelConfig], dict[str, Any]]
    names: Callable[[ModelConfig], Mapping[str, Source | str]]
    prefix: str = ""
    ignored: tuple[str, ...] = ()
    older: Mapping[str, str] = field(default_factory=dict)

    def spellings(self, name: str) -> Iterator[str]:
        """The names under which a checkpoint may hold what belongs under ``name``."""
        for full in (name, name.removeprefix(self.prefix)):
            yield full
            for ending, old in self.older.items():
                if full.endswith(ending):
                    yield full.removesuffix(ending) + old

    def sources(self, config: ModelConfig) -> dict[str, Source]:
        """The place of each of our tensors, layer by layer."""
        sources = {}
        for ours, place in self.names(config).items():
            source = Source(place) if isinstance(place, str) else place
            layers = config.layers
            if ours.startswith("encoder.") and config.encoder_layers is not None:
                layers = config.encoder_layers
            for i in range(layers if "{i}" in ours else 1):
                name = source.name.replace("{i}", str(i))
                sources[ours.replace("{i}", str(i))] = replace(source, name=name)
        return sources


def family_named(name: str) -> Family:
    """A family by its own name."""
    if name not in FAMILIES:
        raise CheckpointError(f"there is no family {name!r}; there are {', '.join(FAMILIES)}.")
    family = importlib.import_module(f"clearhead.models.families.{name}").FAMILY
    assert isinstance(family, Family)
    return family


def family_of(fields: Fields, *, where: str = "config.json") -> Family:
    """Return the family that a config.json belongs to, by its model_type."""
    known: list[str] = []
    for name in FAMILIES:
        family = family_named(name)
        if fields.get("model_type") in family.model_types:
            return family
        known.extend(family.model_types)
    raise CheckpointError(
        f"{where} is of model_type {fields.get('model_type')!r}, which no family reads.",
        hint=f"there are {', '.join(known)}; docs/families.md shows how to add one.",
    )


def required(fields: Fields, *names: str) -> list[Any]:
    """Fields that a config.json must have; the error names all that are missing."""
    missing = [name for name in names if fields.get(name) is None]
    if missing:
        raise CheckpointError(
            f"config.json lacks {', '.join(missing)}.", hint="is it the config.json of this model?"
        )
    return [fields[name] for name in names]


def window_marks(layers: int, marked: Callable[[int], bool]) -> tuple[bool, ...]:
    """Return for each layer whether it attends within a window only."""
    if layers > MOST_LAYERS:
        raise CheckpointError(f"{layers} layers; no model has more than {MOST_LAYERS}.")
    return tuple(marked(layer) for layer in range(layers))


def activation_named(name: Any) -> Any:
    """Our name of an activation; one that we do not know stays, and the config refuses it."""
    known = {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "swish": "silu"}
    return known.get(name, name) if isinstance(name, str) else name


def public_activation(config: ModelConfig) -> str:
    """The reverse of :func:`activation_named`."""
    return "gelu_pytorch_tanh" if config.activation == "gelu_tanh" else config.activation


def token_ids(given: Any) -> tuple[int, ...]:
    """An id, a list of ids or nothing, as a tuple."""
    if given is None:
        return ()
    return tuple(given) if isinstance(given, list | tuple) else (given,)


def first_token(given: Any) -> int | None:
    """The first of some ids, if there is any."""
    return next(iter(token_ids(given)), None)


def one_or_all(ids: tuple[int, ...]) -> int | list[int] | None:
    """The reverse of :func:`token_ids`."""
    if len(ids) > 1:
        return list(ids)
    return ids[0] if ids else None


def attention_names(
    ours: str, theirs: str, parts: str, *, bias: bool, output_bias: bool
) -> dict[str, Source | str]:
    """Names of the four projections; ``parts`` are theirs for query, key, value, output."""
    names: dict[str, Source | str] = {}
    for mine, part in zip(("query", "key", "value", "output"), parts.split(), strict=True):
        names[f"{ours}.{mine}.weight"] = f"{theirs}{part}.weight"
        if output_bias if mine == "output" else bias:
            names[f"{ours}.{mine}.bias"] = f"{theirs}{part}.bias"
    return names


def with_bias(names: Mapping[str, str]) -> dict[str, Source | str]:
    """Each name twice, for weight and bias."""
    return {
        f"{ours}.{kind}": f"{theirs}.{kind}"
        for ours, theirs in names.items()
        for kind in ("weight", "bias")
    }
