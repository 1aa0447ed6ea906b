"""From token ids to hidden states: token embedding plus position, c + p, and segments or norms."""

from __future__ import annotations

from collections.abc import Callable

from jaxtyping import Float, Int
from torch import Tensor, nn

from clearhead.attention.sinusoidal import sinusoidal_positions
from clearhead.errors import InputError, ShapeError
from clearhead.layers.dropout import drop
from clearhead.layers.positions import LearnedPositions
from clearhead.tensors import recorded


class SinusoidalPositions(nn.Module):
    """The waves of Vaswani et al., or Marian's order of them; nothing to learn."""

    def __init__(self, model: int, *, halves: bool = False) -> None:
        super().__init__()
        self.model, self.halves = model, halves

    def forward(
        self, positions: Int[Tensor, "*batch query"]
    ) -> Float[Tensor, "*batch query model"]:
        """The vectors of these positions."""
        return sinusoidal_positions(
            positions, self.model, layout="halves" if self.halves else "interleaved"
        )


class Embedding(nn.Module):
    """tokens · scale + positions + segments, normalised where the family does so."""

    def __init__(
        self,
        vocab: int,
        model: int,
        *,
        positions: LearnedPositions | SinusoidalPositions | None = None,
        segments: int = 0,
        scale: float = 1.0,
        norm: Callable[[], nn.Module] | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocab, model)
        nn.init.normal_(self.tokens.weight, std=model**-0.5)  # so that tied logits start near 1
        self.positions = positions
        self.segments = nn.Embedding(segments, model) if segments else None
        self.norm = None if norm is None else norm()
        self.scale, self.dropout = scale, dropout

    def forward(
        self,
        ids: Int[Tensor, "batch query"],
        positions: Int[Tensor, "#batch query"],
        segments: Int[Tensor, "batch query"] | None = None,
    ) -> Float[Tensor, "batch query model"]:
        """The states that enter the first block."""
        self._check(ids)
        states = self.tokens(ids) * self.scale
        if self.positions is not None:
            states = states + self.positions(positions).to(states.dtype)
        if self.segments is not None:
            self._check_segments(ids, segments)
            states = states + self.segments(ids.new_zeros(()) if segments is None else segments)
        elif segments is not None:
            raise InputError("this model has no segments; got segments.")
        if self.norm is not None:
            states = self.norm(states)
        return drop(states, self.dropout, self.training)

    def _check(self, ids: Tensor) -> None:
        vocab = self.tokens.num_embeddings
        if ids.numel() == 0 or ids.is_meta or recorded():
            return
        low, high = (int(end) for end in ids.aminmax())
        if low < 0 or high >= vocab:
            raise InputError(
                f"token ids must be 0 … {vocab - 1}, the vocabulary; got {low} … {high}.",
                hint="does the tokenizer belong to this model?",
            )

    def _check_segments(self, ids: Tensor, segments: Tensor | None) -> None:
        if segments is None or self.segments is None:
            return
        if segments.shape != ids.shape:
            raise ShapeError(
                f"each token has one segment, {tuple(ids.shape)}; got {tuple(segments.shape)}."
            )
        known = self.segments.num_embeddings
        if not 0 <= int(segments.min()) <= int(segments.max()) < known:
            raise InputError(
                f"segments must be 0 … {known - 1}; got {int(segments.min())} … "
                f"{int(segments.max())}."
            )
