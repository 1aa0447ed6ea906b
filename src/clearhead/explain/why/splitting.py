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
    attention_error: float = 0.0

    @property
    def total(self) -> float:
        """The sum of all parts."""
        heads = sum(float(matrix.sum()) for matrix in self.heads.values())
        rest = (self.feed_forwards, self.embedding, self.biases)
        return heads + sum(sum(part.values()) for part in rest)


def split_stream(
    captured: Captured, row: int, sublayers: Sequence[Sublayer], direction: Direction, id: int
) -> Split:
    """Follow a direction from behind the last of some sublayers back to the embedding.

    ``row`` is one of the captured positions, ``id`` the token there.
    """
    found = Split({}, {}, {}, {}, {})
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
    module, name = rows.module, sublayer.name
    weights, keys = rows.weights[row], rows.keys[row]
    output = module.output.weight.detach().double()  # (model, head · value_dim)
    read = (reading.vector @ output).view(module.heads, module.value_dim)
    parts = torch.zeros(module.heads, rows.values.shape[1], dtype=torch.float64)
    spread = torch.zeros_like(parts)
    mixed = torch.zeros_like(read)
    for head in range(module.heads):
        values = rows.head_values(head)[keys.start : keys.stop].double()
        parts[head, keys.start : keys.stop] = weights[head] * (values @ read[head])
        spread[head, keys.start : keys.stop] = weights[head]
        mixed[head] = weights[head] @ values
    found.heads[name], found.weights[name] = parts.numpy(), spread.numpy()
    own = output @ mixed.flatten()
    if module.output.bias is not None:
        bias = module.output.bias.detach().double()
        found.biases[f"W_O of {name}"] = float(reading.of(bias))
        own = own + bias
    written = sublayer.written[row]
    error = float((own - written).norm() / written.norm().clamp(min=1e-30))
    found.attention_error = max(found.attention_error, error)


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
