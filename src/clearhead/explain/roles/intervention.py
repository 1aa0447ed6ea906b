"""Interventions: a head is ablated, and the change of the model is measured.

Attention shows what a head attends to, not whether the model needs it. So the head's output is
replaced by zeros, and by its mean. The change is measured at the cases of its role and elsewhere,
on sample sentences:

- a decoder: the loss in nats, of the token predicted at the query's (last) token;
- an encoder has no loss at a position: the relative change of its final states there,
  ‖after − before‖ / ‖before‖.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from clearhead.errors import InputError
from clearhead.explain.interventions.mean_outputs import MeanOutput
from clearhead.explain.interventions.outputs import Outputs
from clearhead.explain.interventions.projection import output_projection
from clearhead.explain.roles.batches import Batch, batches
from clearhead.explain.roles.counting import Progress
from clearhead.explain.roles.counts.effect_cache import EffectCache
from clearhead.explain.roles.counts.tally import CountedLayer, Tally
from clearhead.explain.roles.effect import Change, Effect, Measure, Way
from clearhead.explain.roles.judging import Role
from clearhead.explain.roles.prepared import Prepared, prepare
from clearhead.explain.roles.properties import AnyProperty
from clearhead.explain.roles.property_index import PropertyIndex
from clearhead.explain.roles.reader import Reader
from clearhead.models.decoder import Decoder


def effects_of(
    roles: Sequence[Role],
    tally: Tally,
    reader: Reader,
    properties: Sequence[AnyProperty],
    stage: Callable[[str], Progress | None],
    cache: EffectCache | None = None,
) -> tuple[Effect, ...]:
    """Measure the effects of ablating the head of each role, in both ways.

    What the cache knows is not measured again; what is measured is kept there at once.
    """
    known = {} if cache is None else cache.known
    missing = [role for role in roles if (role.head, role.property) not in known]
    progress = stage("ablating heads") if missing else None
    found = dict(known)
    for number, role in enumerate(missing):
        measured = _measured_effects(role, tally, reader, properties)
        found[role.head, role.property] = measured
        if cache is not None:
            cache.keep(measured)
        if progress is not None:
            progress(number + 1, len(missing))
    return tuple(one for role in roles for one in found[role.head, role.property])


def _measured_effects(
    role: Role, tally: Tally, reader: Reader, properties: Sequence[AnyProperty]
) -> tuple[Effect, ...]:
    layer, head = _layer(role, tally)
    samples = [sentence for _, _, sentence in sorted(tally.samples[role.property])]
    index = PropertyIndex(list(tally.index.entries), dict(tally.index.numbers))
    ready = [prepare(reader.read(one), properties, index) for one in samples]
    return tuple(_effects(role, layer, head, list(batches(ready)), reader, index))


def _effects(
    role: Role,
    layer: CountedLayer,
    head: int,
    work: list[Batch],
    reader: Reader,
    index: PropertyIndex,
) -> list[Effect]:
    outputs, mean, before = _outputs(reader, layer), MeanOutput(), []
    with outputs.read_by(mean.add):
        for batch in work:
            mean.real = torch.arange(batch.width) < batch.lengths[:, None]
            before.append(_measured(reader, batch))
    if not mean.count:
        raise InputError(
            f"the heads of {layer.name} are put together without calling the module for it.",
            hint="roles(…, interventions=0) works without ablations.",
        )
    at_cases = [_case_positions(batch, role, layer, index) for batch in work]
    columns = [slice(head * layer.value_dim, (head + 1) * layer.value_dim)]
    effects = []
    ways: tuple[tuple[Way, Tensor | None], ...] = (("zero", None), ("mean", mean.mean()))
    for way, instead in ways:
        inside, outside = [], []
        for batch, was, cases in zip(work, before, at_cases, strict=True):
            with outputs.replaced(columns, instead):
                change = _changed(was, _measured(reader, batch))
            valid = _valid(batch, reader)
            inside.append(change[cases & valid])
            outside.append(change[~cases & valid])
        measure: Measure = "loss" if _has_loss(reader) else "states"
        effects.append(
            Effect(role.head, role.property, way, measure, _change(inside), _change(outside))
        )
    return effects


def _outputs(reader: Reader, layer: CountedLayer) -> Outputs:
    width = layer.heads * layer.value_dim
    return Outputs(output_projection(reader.module, layer.path, width, layer.name), joined=True)


def _layer(role: Role, tally: Tally) -> tuple[CountedLayer, int]:
    name, _, head = role.head.rpartition("H")
    return next(layer for layer in tally.layers if layer.name == name), int(head)


def _has_loss(reader: Reader) -> bool:
    """Return whether the model predicts the next token at every position."""
    kind = type(reader.module).__name__
    return isinstance(reader.module, Decoder) or kind.endswith(("ForCausalLM", "LMHeadModel"))


def _measured(reader: Reader, batch: Batch) -> Tensor:
    """The loss at each position (batch, query), or the states (batch, query, model)."""
    ids, module = batch.ids(), reader.module
    real = torch.arange(batch.width) < batch.lengths[:, None]
    if not _has_loss(reader):
        return _states(reader.run(ids, real))[: len(ids)].cpu()
    device = next(module.parameters()).device
    with torch.no_grad():
        if isinstance(module, Decoder):
            logits = module(ids.to(device))
        else:
            called: Any = module
            logits = called(input_ids=ids.to(device), attention_mask=real.long().to(device)).logits
        following = functional.pad(ids[:, 1:], (0, 1)).to(device)
        return functional.cross_entropy(logits.mT.float(), following, reduction="none").cpu()


def _states(output: Any) -> Tensor:
    states: Tensor = output if isinstance(output, Tensor) else output[0]
    return states


def _changed(before: Tensor, after: Tensor) -> Tensor:
    if before.ndim == 2:
        return after - before
    moved: Tensor = (after - before).norm(dim=-1) / before.norm(dim=-1).clamp(min=1e-9)
    return moved


def _valid(batch: Batch, reader: Reader) -> Tensor:
    """Real positions; for the loss, those with a real token after them."""
    last = batch.lengths - (1 if _has_loss(reader) else 0)
    return torch.arange(batch.width) < last[:, None]


def _case_positions(batch: Batch, role: Role, layer: CountedLayer, index: PropertyIndex) -> Tensor:
    """True at the (last) token of every case of the role that may attend to a target."""
    number = index.numbers[role.property]
    level = index.entries[number].level
    flags = torch.zeros(len(batch.sentences), batch.width, dtype=torch.bool)
    for row, one in enumerate(batch.sentences):
        for prop, query, key in one.edges[level]:
            if prop == number and (key <= query or not layer.causal):
                flags[row, _last_token(one, int(query)) if level == "words" else int(query)] = True
    return flags


def _last_token(one: Prepared, unit: int) -> int:
    return int((one.owners == unit).nonzero()[0][-1])


def _change(parts: list[Tensor]) -> Change:
    values = torch.cat(parts).double() if parts else torch.zeros(0)
    many = len(values)
    if many == 0:
        return Change(0.0, math.inf, 0)
    error = float(values.std()) / math.sqrt(many) if many > 1 else math.inf
    return Change(round(float(values.mean()), 6), error, many)
