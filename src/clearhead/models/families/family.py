"""``Family`` and ``Source``: what a family file declares; finding the family of a checkpoint."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from clearhead.errors import CheckpointError
from clearhead.models.config import ModelConfig
from clearhead.models.config_checks import DROPOUTS
from clearhead.models.families.field_rules import FieldRules, Fields

OWN_DROPOUTS = "clearhead_dropout"  # field of a config.json
FAMILIES = ("llama", "gpt2", "gemma", "bert", "distilbert", "t5", "bart", "clearhead")


@dataclass(frozen=True)
class Source:
    """The place of one of our tensors in a checkpoint: its name there, and how it is stored.

    ``part`` of ``parts``: theirs holds several of ours one after another along its output axis.
    ``transposed``: theirs is (in, out), ours (out, in). ``row``: theirs is (1, n), ours (n).
    ``paired_heads``: rows of so many heads rotate with their neighbours in theirs, by halves in
    ours. ``shift``: what is added to theirs. ``search``: the names under which it may lie, first
    ones first, where there are several. ``optional``: where it is absent, ours is zero.
    """

    name: str
    part: int = 0
    parts: int = 1
    transposed: bool = False
    row: bool = False
    paired_heads: int = 0
    shift: float = 0.0
    search: tuple[str, ...] = ()
    optional: bool = False

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

    ``read_fields`` makes our config of a config.json's fields, once ``rules`` have refused what we
    do not understand and filled in what is absent; ``write`` is the reverse. ``rules`` are those
    of each model_type. ``names`` gives for a config the place of each of our tensors; ``{i}`` in
    both stands for the layer. ``prefix`` may be absent in checkpoints of the bare model.

    Tensors that are not read: ``ignored`` are endings of names that change no number, each with
    the reason; ``dropped`` are endings of those that belong to an output that we do not compute,
    which ``load`` reports; ``constants`` are endings of those whose numbers we compute ourselves:
    the function gives for a file's tensor what it must hold. ``older`` maps endings of names to
    the ones that old checkpoints have in their place.
    """

    name: str
    model_types: tuple[str, ...]
    read_fields: Callable[[Fields], ModelConfig]
    write: Callable[[ModelConfig], dict[str, Any]]
    names: Callable[[ModelConfig], Mapping[str, Source | str]]
    rules: Mapping[str, FieldRules] = field(default_factory=dict)
    prefix: str = ""
    ignored: Mapping[str, str] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    constants: Mapping[str, Callable[[Tensor], Tensor]] = field(default_factory=dict)
    older: Mapping[str, str] = field(default_factory=dict)

    def read(self, fields: Fields) -> ModelConfig:
        """Our config of a config.json.

        Raises:
            CheckpointError: a field is refused by name, or a required one is missing.
        """
        own, fields = _own_dropouts(fields)
        rules = self.rules.get(fields.get("model_type", self.name))
        config = self.read_fields(fields if rules is None else rules.completed(fields))
        return config.changed(**own) if own else config

    def fields_of(self, config: ModelConfig) -> dict[str, Any]:
        """The fields of a config.json for our config.

        Dropouts that the family's config.json cannot say are in a field of our own: training
        further goes on with them.
        """
        fields = self.write(config)
        named = {name: getattr(config.resolved(), name) for name in DROPOUTS}
        read_back = self.read(fields).resolved()
        if any(getattr(read_back, name) != value for name, value in named.items()):
            fields[OWN_DROPOUTS] = named
        return fields

    def unread(self, fields: Fields) -> tuple[str, ...]:
        """The fields of a config.json that nobody knows."""
        rules = self.rules.get(fields.get("model_type", self.name))
        return () if rules is None else rules.unread(_own_dropouts(fields)[1])

    def spellings(self, name: str) -> Iterator[str]:
        """The names under which a checkpoint may hold what belongs under ``name``."""
        for full in (name, name.removeprefix(self.prefix)):
            yield full
            for ending, old in self.older.items():
                if full.endswith(ending):
                    yield full.removesuffix(ending) + old

    def places(self, source: Source) -> Iterator[str]:
        """Every name under which a checkpoint may hold this tensor."""
        for name in source.search or (source.name,):
            yield from self.spellings(name)

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


def _own_dropouts(fields: Fields) -> tuple[dict[str, Any], Fields]:
    """Our own field of a config.json, and the other ones."""
    if OWN_DROPOUTS not in fields:
        return {}, fields
    own = fields[OWN_DROPOUTS]
    if not isinstance(own, dict) or not set(own) <= set(DROPOUTS):
        raise CheckpointError(
            f"config.json: {OWN_DROPOUTS} must hold {', '.join(DROPOUTS)}; got {str(own)[:60]}."
        )
    return own, {name: value for name, value in fields.items() if name != OWN_DROPOUTS}


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
