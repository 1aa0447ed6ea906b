"""Why a head attends there: a score as a sum over what was written at the query and at the key.

A score is q · k. The query is W_q times the normalised state, and the state is a sum of what the
embedding, earlier heads and feed-forward layers wrote at the query's position. With the scales of
norms known, the score is linear in these parts while the key is held fixed, and in the parts of the
key while the query is. Rotary positions turn q and k by fixed angles: that is linear as well.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from clearhead.arguments import about
from clearhead.arguments import text as text_argument
from clearhead.attention.rotary import Rotation, rotate
from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.explain.interventions.places import Place, places_of
from clearhead.explain.make_look import evaluating
from clearhead.explain.marks import find_mark, marks_of
from clearhead.explain.pictures import Mark
from clearhead.explain.why.direction import Direction
from clearhead.explain.why.prediction_run import Text, read_text
from clearhead.explain.why.splitting import Split, split_stream
from clearhead.explain.why.sublayers import Capture, Captured
from clearhead.layers.linear import Linear
from clearhead.models.encoder_decoder import EncoderDecoder

TOLERANCE = 1e-4


@dataclass(frozen=True)
class ScorePart:
    """What one part of the model added to a score, by what it wrote at the query or at the key."""

    name: str  # "embedding", "L3H1", "L3F", "biases"
    value: float


@dataclass(frozen=True)
class ScoreWhy:
    """The scaled score of a query and a key in one head, as two sums."""

    head: str
    query: Mark
    key: Mark
    score: float  # score · scale, before softcap, bias and mask: by the layer's own q and k
    at_query: tuple[ScorePart, ...]  # with the key held fixed; the largest first
    at_key: tuple[ScorePart, ...]  # with the query held fixed
    error: float  # of the worse sum, against the score; relative to |q|·|k|·scale

    @property
    def exact(self) -> bool:
        """True if both sums give the score within 1e-4."""
        return self.error <= TOLERANCE

    def __repr__(self) -> str:
        strongest = ", ".join(f"{one.name} {one.value:+.2f}" for one in self.at_key[:3])
        pair = f"{self.query.text!r} → {self.key.text!r}"
        return f"ScoreWhy({self.head}, {pair}: {self.score:.2f}; at the key {strongest})"


def score_why(loaded: Loaded, text: Text, head: str, query: int | str, key: int | str) -> ScoreWhy:
    """Take the score of a query and a key in one head apart."""
    if isinstance(loaded.model, EncoderDecoder):
        raise InputError("scores are taken apart for decoders and encoders; this has both.")
    (place,) = places_of(loaded, text_argument("head", head), "head")
    if len(place.heads) != 1:
        raise InputError(f"head {head}: one head is wanted, such as L16H5.")
    passage = read_text(loaded, text)
    marks = marks_of(passage, len(passage), words=True)
    chosen = []
    for name, word in (("query", query), ("key", key)):
        with about(name):
            chosen.append(marks[find_mark(marks, word)])
    places = [mark.tokens[-1] for mark in chosen]
    ids = [token.id for token in passage.tokens]
    if loaded.config.kind == "decoder" and places[1] > places[0]:
        raise InputError(
            f"the key “{chosen[1].text}” stands behind the query “{chosen[0].text}”: it is masked."
        )
    capture = Capture(loaded.model.stack, places)
    with evaluating(loaded), capture.running():
        loaded.model(torch.tensor([ids], device=next(loaded.model.parameters()).device))
    sides = _Sides(capture.captured(), place)
    parts = [sides.split(row, ids[position]) for row, position in enumerate(places)]
    error = max(abs(split.total - sides.score) for split in parts) / sides.size
    named = [_named(split) for split in parts]
    return ScoreWhy(place.name, chosen[0], chosen[1], sides.score, named[0], named[1], error)


class _Sides:
    """Query and key of one head in float64, each with what is needed to follow it back."""

    def __init__(self, captured: Captured, place: Place) -> None:
        self.captured, self.module, self.head = captured, place.attention, place.heads[0]
        layer = place.name.partition("H")[0]
        self.number = [one.name for one in captured.sublayers].index(layer)
        self.sublayer = captured.sublayers[self.number]
        scale = self.module.scale
        self.scale = self.module.key_dim**-0.5 if scale is None else scale
        self.raw = [self._projected(row) for row in (0, 1)]  # before the heads' norms
        self.placed = [self._rotated(self._normed(row), row, forward=True) for row in (0, 1)]
        self.score = float(self.placed[0] @ self.placed[1]) * self.scale
        size = self.placed[0].norm() * self.placed[1].norm() * abs(self.scale)
        self.size = float(size.clamp(min=1e-30))

    def split(self, row: int, id: int) -> Split:
        """The score as a sum over what was written at one side, the other held fixed."""
        other = self._rotated(self.placed[1 - row] * self.scale, row, forward=False)
        direction = Direction(other)
        norm = self._norm(row)
        if norm is not None:
            direction = direction.before_norm(norm, self.raw[row], "norm of the heads")
        linear, rows = self._linear(row)
        direction = _before_rows(direction, linear, rows)
        before = self.sublayer.residual.before
        if before is not None:
            direction = direction.before_norm(
                before, self.sublayer.before[row], f"norm before {self.sublayer.name}"
            )
        earlier = self.captured.sublayers[: self.number]
        return split_stream(self.captured, row, earlier, direction, id)

    def _linear(self, row: int) -> tuple[Linear, slice]:
        module, width = self.module, self.module.key_dim
        group = module.heads // module.kv_heads
        number = self.head if row == 0 else self.head // group
        return (module.query if row == 0 else module.key), slice(
            number * width, (number + 1) * width
        )

    def _norm(self, row: int) -> nn.Module | None:
        return self.module.query_norm if row == 0 else self.module.key_norm

    def _projected(self, row: int) -> Float[Tensor, " key_dim"]:
        states = self.sublayer.before[row]
        before = self.sublayer.residual.before
        if before is not None:
            states = Direction.normed(before, states)
        linear, rows = self._linear(row)
        found = linear.weight[rows].detach().double() @ states
        return found if linear.bias is None else found + linear.bias[rows].detach().double()

    def _normed(self, row: int) -> Float[Tensor, " key_dim"]:
        norm = self._norm(row)
        return self.raw[row] if norm is None else Direction.normed(norm, self.raw[row])

    def _rotated(
        self, vector: Float[Tensor, " key_dim"], row: int, *, forward: bool
    ) -> Float[Tensor, " key_dim"]:
        """The vector turned by its position; backward is the transpose."""
        rotary = self.module.rotary
        if rotary is None:
            return vector
        places = torch.tensor([[self.captured.positions[row]]])
        cosines, sines = rotary.at(places, torch.float64)
        turn = Rotation(cosines, sines if forward else -sines)
        return rotate(vector[None, None, None], turn, rotary.pairing)[0, 0, 0]


def _before_rows(direction: Direction, linear: Linear, rows: slice) -> Direction:
    """As :meth:`Direction.before_linear`, for some rows of the matrix."""
    vector = direction.vector @ linear.weight[rows].detach().double()
    constants = dict(direction.constants)
    if linear.bias is not None:
        constants["projection"] = float(direction.vector @ linear.bias[rows].detach().double())
    return Direction(vector, constants)


def _named(split: Split) -> tuple[ScorePart, ...]:
    parts = [ScorePart("embedding", sum(split.embedding.values()))]
    for layer, matrix in split.heads.items():
        put = split.replaced[layer]
        parts += [
            ScorePart(f"{layer}H{head}", float(row.sum()) + put.get(head, 0.0))
            for head, row in enumerate(matrix)
        ]
    parts += [ScorePart(name, value) for name, value in split.feed_forwards.items()]
    if split.biases:
        parts.append(ScorePart("biases", sum(split.biases.values())))
    return tuple(sorted(parts, key=lambda part: -abs(part.value)))
