"""Records made wrong on purpose: one tensor of a saved trace is changed, and the proof must notice.

Every tensor of the file takes its turn, whatever it holds, so that nothing of a record is left out.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from clearhead.errors import ClearheadError
from clearhead.trace.seen import Seen
from clearhead.trace.trace_file import open_trace
from tests.trace.generated.shown import shown_of

KEY = "clearhead.trace"
NOTICEABLE = 0.02  # a weight that is off by as much has to be noticed
NOTICEABLE_IN_HALF = 0.25  # where the output is rounded to two digits
Tensors = dict[str, Tensor]


@dataclass(frozen=True)
class Lie:
    """One falsification: what it changes, and the contents of the file after it."""

    what: str
    tensors: Tensors
    facts: dict[str, Any]


def lies(tensors: Tensors, facts: dict[str, Any], chance: random.Random) -> Iterator[Lie]:
    """Every falsification of a trace."""
    for name, tensor in tensors.items():
        for what, changed in _changes(tensor, chance):
            yield Lie(f"{name}: {what}", {**tensors, name: changed}, facts)
    for number, layer in enumerate(facts["layers"]):
        other = {**layer, "scale": layer["scale"] * 1.7}
        layers = [*facts["layers"][:number], other, *facts["layers"][number + 1 :]]
        yield Lie(f"{number}: scale", tensors, {**facts, "layers": layers})
        yield Lie(f"{number}: two heads swapped, alike in all", _swapped(tensors, number), facts)
        yield Lie(f"{number}: other queries, sums mended", _mended(tensors, number, facts), facts)


def _changes(tensor: Tensor, chance: random.Random) -> Iterator[tuple[str, Tensor]]:
    """One tensor, falsified in several ways."""
    if tensor.numel() == 0:
        return
    if tensor.dtype == torch.bool:
        place = chance.randrange(tensor.numel())
        yield "one cell", _at(tensor, place, lambda cell: ~cell)
        return
    if not tensor.is_floating_point():
        place = chance.randrange(tensor.numel())
        yield "one more", _at(tensor, place, lambda cell: cell + 1)
        return
    noise = torch.randn(tensor.shape, generator=torch.Generator().manual_seed(3)).to(tensor.dtype)
    yield "all", tensor + noise * (tensor.abs().mean() + 1)
    row = chance.randrange(tensor.shape[-1])
    one = tensor.clone()
    one[..., row] = one[..., row] * 1.5 + 0.7
    yield "one of the last axis", one
    if tensor.ndim > 2 and tensor.shape[1] > 1:
        order = [1, 0, *range(2, tensor.shape[1])]
        yield "two heads swapped", tensor[:, order].contiguous()
    if tensor.ndim > 3:
        one, row = tensor.clone(), chance.randrange(tensor.shape[2])
        one[:, :, row] = one[:, :, row] * 1.5 + 0.7
        yield "one row", one


def _at(tensor: Tensor, place: int, change: Callable[[Tensor], Tensor]) -> Tensor:
    changed = tensor.clone().flatten()
    changed[place] = change(changed[place])
    return changed.view(tensor.shape)


def _swapped(tensors: Tensors, number: int) -> Tensors:
    """Queries, keys and log-sum-exps of two heads change places: rows still sum to 1."""
    changed = dict(tensors)
    for name in (f"{number}.{part}" for part in ("query", "key", "logsum")):
        tensor = tensors.get(name)
        if tensor is not None and tensor.ndim > 2 and tensor.shape[1] > 1:
            changed[name] = tensor[:, [1, 0, *range(2, tensor.shape[1])]].contiguous()
    return changed


def _mended(tensors: Tensors, number: int, facts: dict[str, Any]) -> Tensors:
    """Queries negated, and the log-sum-exp moved so that rows sum to 1 again, where nothing hides.

    Masks are left alone, so this lie is perfect only in layers without one.
    """
    query, key, logsum = (tensors.get(f"{number}.{part}") for part in ("query", "key", "logsum"))
    if query is None or key is None or logsum is None:
        return tensors
    shared = key.double().repeat_interleave(query.shape[1] // key.shape[1], dim=1)
    scores = query.double() @ shared.transpose(2, 3) * facts["layers"][number]["scale"]
    moved = torch.logsumexp(-scores, -1) - torch.logsumexp(scores, -1) + logsum.double()
    return {**tensors, f"{number}.query": -query, f"{number}.logsum": moved.to(logsum.dtype)}


def unnoticed(seen: Seen, folder: Path, chance: random.Random, count: int | None) -> list[str]:
    """The falsifications (``count`` of them, or all) that change weights and pass as exact."""
    path = seen.save(folder / "true.trace")
    with safe_open(path, "pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        metadata = file.metadata()
    facts = json.loads(metadata[KEY])
    true = [one.weights for one in shown_of(open_trace(path))]
    halves = {torch.float16, torch.bfloat16}
    half = any(layer.dtype in halves for layer in seen.layers)
    every = list(lies(tensors, facts, chance))
    chosen = every if count is None else chance.sample(every, min(count, len(every)))
    found = []
    for lie in chosen:
        false = folder / "false.trace"
        facts = {name: one for name, one in lie.facts.items() if name != "checksums"}
        # Without checksums, as a forger would write it: the proof has to find it, not the file.
        save_file(lie.tensors, false, {KEY: json.dumps(facts)})
        if _passes(false, true, NOTICEABLE_IN_HALF if half else NOTICEABLE):
            found.append(lie.what)
    return found


def _passes(path: Path, true: list[Tensor], noticeable: float) -> bool:
    """True if a falsified trace shows other weights and calls them exact."""
    try:
        opened = open_trace(path)
        false = [one.weights for one in shown_of(opened)]
        if not any(_differ(one, other, noticeable) for one, other in zip(true, false, strict=True)):
            return False
        return bool(opened.verify().exact)
    except ClearheadError:
        return False  # refused


def _differ(true: Tensor, false: Tensor, noticeable: float) -> bool:
    if true.shape != false.shape:
        return True
    off = (true - false).abs().nan_to_num(torch.inf)
    return bool(((off > noticeable) & ~true.isnan()).any())  # NaN was no number before either
