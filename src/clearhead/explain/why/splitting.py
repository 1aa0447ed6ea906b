"""The residual stream at a position, split into what every part of the model wrote there.

A direction reads the stream. It is followed back, sublayer by sublayer: each write is read, then
the norm that stands on the stream, if any, is passed. What is left at the end reads the embedding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from clearhead.explain.why.direction import Direction
from clearhead.explain.why.sublayers import AttentionRows, Captured, Sublayer


@dataclass(eq=False)
class Split:
    """The parts as numbers, while they are being collected from the last layer to the first."""

    heads: dict[str, Float[np.ndarray, "head key"]]  # contributions, by attention layer
    weights: dict[str, Float[np.ndarray, "head key"]]
    feed_forwards: dict[str, float]
    embedding: dict[str, float]
    biases: dict[str, float]
    replaced: dict[str, dict[int, float]]  # heads whose output an intervention put there, by layer
    attention_error: float = 0.0

    @property
    def total(self) -> float:
        """The sum of all parts."""
        heads = sum(float(matrix.sum()) for matrix in self.heads.values())
        put = sum(sum(part.values()) for part in self.replaced.values())
        rest = (self.feed_forwards, self.embedding, self.biases)
        return heads + put + sum(sum(part.values()) for part in rest)


def split_stream(
    captured: Captured, row: int, sublayers: Sequence[Sublayer], direction: Direction, id: int
) -> Split:
    """Follow a direction from behind the last of some sublayers back to the embedding.

    ``row`` is one of the captured positions, ``id`` the token there.
    """
    found = Split({}, {}, {}, {}, {}, {})
    for sublayer in reversed(sublayers):
        direction = _through(sublayer, row, direction, found)
    _embedding_parts(captured, row, id, direction, found)
    found.heads = dict(reversed(found.heads.items()))
    found.feed_forwards = dict(reversed(found.feed_forwards.items()))
    return found


def _through(sublayer: Sublayer, row: int, direction: Direction, found: Split) -> Direction:
    """Read what a sublayer wrote; return the direction for what it read."""
    residual, name = sublayer.residual, sublayer.name
    before, written = sublayer.before[row], sublayer.written[row]
    reading = direction
    if residual.place == "after":
        assert residual.after is not None
        direction = direction.before_norm(residual.after, before + written, f"norm of {name}")
        reading = direction
    elif residual.place == "around":
        assert residual.after is not None
        reading = Direction(direction.vector).before_norm(
            residual.after, written, f"norm behind {name}"
        )
        found.biases.update(reading.constants)
    if sublayer.attention is None:
        found.feed_forwards[name] = float(reading.of(written))
    else:
        _read_heads(sublayer, row, sublayer.attention, reading, found)
    return direction


def _read_heads(
    sublayer: Sublayer, row: int, rows: AttentionRows, reading: Direction, found: Split
) -> None:
    """Contribution of each head and key: weight · (v · W_O · direction)."""
    module, name, changed = rows.module, sublayer.name, rows.changed[row]
    output = module.output.weight.detach().double()  # (model, head · value_dim)
    read = (reading.vector @ output).view(module.heads, module.value_dim)
    parts = torch.zeros(module.heads, rows.values.shape[1], dtype=torch.float64)
    spread = torch.zeros_like(parts)
    joined = rows.joined[row].view_as(read)
    mixed, uncut = torch.zeros_like(read), torch.zeros_like(read)
    replaced: dict[int, float] = {}
    found.replaced[name] = replaced
    for head in range(module.heads):
        if head in changed.replaced:
            mixed[head] = uncut[head] = joined[head]
            replaced[head] = float(joined[head] @ read[head])
            continue
        reach = slice(rows.keys[row].start, rows.keys[row].stop)
        given, values = _given(rows, row, head), rows.head_values(head)[reach].double()
        parts[head, reach] = given * (values @ read[head])
        spread[head, reach] = rows.weights[row][head]
        mixed[head], uncut[head] = given @ values, rows.weights[row][head] @ values
    found.heads[name], found.weights[name] = parts.numpy(), spread.numpy()
    own = output @ mixed.flatten()
    size = (output @ uncut.flatten()).norm()
    if module.output.bias is not None:
        bias = module.output.bias.detach().double()
        found.biases[f"W_O of {name}"] = float(reading.of(bias))
        own = own + bias
    written = sublayer.written[row]
    error = float((own - written).norm() / written.norm().maximum(size).clamp(min=1e-30))
    found.attention_error = max(found.attention_error, error)


def _given(rows: AttentionRows, row: int, head: int) -> Float[torch.Tensor, " reach"]:
    """The weights with which the values were really added: 0 where an edge is cut."""
    weights, first = rows.weights[row][head], rows.keys[row].start
    cut = [key - first for key in rows.changed[row].cut.get(head, ()) if key in rows.keys[row]]
    if not cut:
        return weights
    given = weights.clone()
    given[cut] = 0
    return given


def _embedding_parts(
    captured: Captured, row: int, id: int, direction: Direction, found: Split
) -> None:
    """The token's own vector, its position and its segment."""
    embedding, offset = captured.stack.embedding, captured.stack.config.position_offset
    vectors = {"token": embedding.tokens.weight[id].detach().double() * embedding.scale}
    if embedding.positions is not None:
        place = torch.tensor([captured.positions[row] + offset])
        vectors["position"] = embedding.positions(place)[0].detach().double()
    if embedding.segments is not None:
        vectors["segment"] = embedding.segments.weight[0].detach().double()
    if embedding.norm is not None:
        whole = torch.stack(list(vectors.values())).sum(dim=0)
        direction = direction.before_norm(embedding.norm, whole, "norm of the embedding")
    found.embedding.update({name: float(direction.of(one)) for name, one in vectors.items()})
    found.biases.update(direction.constants)
