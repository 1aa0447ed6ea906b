"""The record of one attention layer, linear in tokens: q, k and each row's log-sum-exp.

This is the interface between watching (attention calls come in) and looking (views are computed).
Every weight can be computed again, exactly, from

    weight = exp(cap(scale · q · k) + bias − logsum)   where visible, otherwise 0

with cap(s) = softcap · tanh(s / softcap), or s without a softcap. Details that a reader of records
must know:

- A row that sees nothing has logsum 0, so that its weights are exp(−∞ − 0) = 0 and never NaN.
- Sinks are part of logsum already: rows then sum to 1 − exp(sink − logsum).
- A model that masks keys with a huge finite number attends equally to all keys in a row that sees
  nothing. Such a row is kept with a query of zeros, all keys visible and logsum = log(keys):
  the model's own weights, by the same formula. ``facts.note`` says so.
- With ``heads=`` only some heads are kept: ``head_numbers`` gives the model's number of each head
  along the head axis. Keys are then kept once for each kept head.
- ``pieces`` are the masks and biases as plain tensors (see ``row_rules.py``): for saving.
- A record may grow while the block of ``watch`` runs; every property is right at any time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from clearhead.trace.chunks import PER_KEY, TENSORS, Chunk, LaterSums, concatenated, reordered
from clearhead.trace.row_joins import joined_rules
from clearhead.trace.row_rules import RowRules, crop_keys

MOST_CHUNKS = 16  # that are compared one by one; more are put together


@dataclass(frozen=True)
class LayerFacts:
    """The description of a layer: its name, kind and options, without any tensor."""

    name: str  # "L16"; "E3" in the encoder of an encoder-decoder; "C3" its cross-attention
    path: str  # of the module, "model.layers.16.self_attn"; "" if unknown
    kind: Literal["self", "cross"]
    causal: bool  # nothing above the diagonal was visible
    heads: int  # of the model, also where fewer are kept
    kv_heads: int
    key_dim: int
    value_dim: int
    scale: float
    softcap: float | None
    dtype: torch.dtype  # of the model's own computation
    note: str  # what a reader must know, e.g. "weights before dropout"


class LayerRecord:
    """The calls of one attention layer for one batch of sequences.

    Rows are queries in the order in which they were computed: the prompt, then every step.
    """

    def __init__(
        self,
        facts: LayerFacts,
        query: Float[Tensor, "batch head query key_dim"],
        key: Float[Tensor, "batch kv_head key key_dim"],
        logsum: Float[Tensor, "batch head query"] | LaterSums,
        *,
        value: Float[Tensor, "batch kv_head key value_dim"] | None = None,
        output: Float[Tensor, "batch head query value_dim"] | None = None,
        sinks: Float[Tensor, " head"] | None = None,
        pieces: list[RowRules] | None = None,
        head_numbers: tuple[int, ...] | None = None,
        value_probe: Float[Tensor, "batch kv_head key probe"] | None = None,
        output_probe: Float[Tensor, "batch head query probe"] | None = None,
    ) -> None:
        self.facts, self.sinks = facts, sinks
        self.head_numbers = head_numbers or tuple(range(query.shape[1]))
        whole = RowRules(query.shape[2], key.shape[2])
        self._pieces = [whole] if pieces is None else list(pieces)
        self._chunks = [
            Chunk(query, key, value, logsum, output, whole, None, value_probe, output_probe)
        ]
        self._rows, self._keys = query.shape[2], key.shape[2]
        self.settle: Callable[[], None] = _settled  # adds rows that still wait to be recorded

    @property
    def rows(self) -> int:
        """The number of queries."""
        self.settle()
        return self._rows

    @property
    def keys(self) -> int:
        """The number of keys."""
        self.settle()
        return self._keys

    def __repr__(self) -> str:
        batch, heads, rows, _ = self.shape
        sizes = f"{batch} × {heads} heads, {rows:,} queries × {self.keys:,} keys"
        return f"LayerRecord({self.facts.name}, {self.facts.kind}: {sizes})"

    @property
    def shape(self) -> torch.Size:
        """(batch, head, query, key_dim), without putting the queries together."""
        batch, heads, _, key_dim = self._chunks[-1].query.shape
        return torch.Size((batch, heads, self.rows, key_dim))

    @property
    def query(self) -> Float[Tensor, "batch head query key_dim"]:
        """All queries so far."""
        return self._merged().query

    @property
    def key(self) -> Float[Tensor, "batch kv_head key key_dim"]:
        """All keys so far."""
        return self._merged().key

    @property
    def value(self) -> Float[Tensor, "batch kv_head key value_dim"] | None:
        """All values so far, when they were asked for."""
        return self._merged().value

    @property
    def logsum(self) -> Float[Tensor, "batch head query"]:
        """Log-sum-exp of each row's masked, biased, capped scores, sinks included."""
        return self._merged().logsum

    @property
    def output(self) -> Float[Tensor, "batch head query value_dim"] | None:
        """The layer's own output before W_O, when values are kept: for the proof."""
        return self._merged().output

    @property
    def value_probe(self) -> Float[Tensor, "batch kv_head key probe"] | None:
        """Projections of the values (``proving/probes.py``), where the layer's output was seen."""
        return self._merged().value_probe

    @property
    def output_probe(self) -> Float[Tensor, "batch head query probe"] | None:
        """The same projections of the layer's own output before W_O."""
        return self._merged().output_probe

    @property
    def pieces(self) -> list[RowRules]:
        """Masks and biases of consecutive runs of rows, as plain tensors."""
        self._merged()
        return list(self._pieces)

    @property
    def nbytes(self) -> int:
        """Memory of all tensors but the masks."""
        self.settle()
        return sum(chunk.nbytes for chunk in self._chunks)

    def head_index(self, number: int) -> int | None:
        """Where the model's head stands along the head axis; None if it was not kept."""
        return self.head_numbers.index(number) if number in self.head_numbers else None

    def visible(
        self, batch: int, rows: range, columns: range
    ) -> Bool[Tensor, "head_or_1 rows columns"] | None:
        """Which cells of a block are visible; None if all of them are."""
        parts = [
            (piece, span, _piece_mask(piece, batch, span, columns))
            for piece, span in self._pieces_of(rows)
        ]
        if all(seen is None for _, _, seen in parts):
            return None
        device = self._chunks[0].query.device
        spelled = [
            torch.ones(1, len(span), len(columns), dtype=torch.bool, device=device)
            if seen is None
            else seen
            for _, span, seen in parts
        ]
        return _stacked(spelled)

    def bias(
        self, batch: int, rows: range, columns: range
    ) -> Float[Tensor, "head_or_1 rows columns"] | None:
        """What is added to the scaled, capped scores of a block; None if nothing is."""
        pieces = self._pieces_of(rows)
        if all(piece.bias is None for piece, _ in pieces):
            return None
        like = self._chunks[0].query
        like = like.new_zeros((), dtype=torch.promote_types(like.dtype, torch.float32))
        return _stacked(
            [
                like.new_zeros(1, len(span), len(columns))
                if piece.bias is None
                else _piece_bias(piece, batch, span, columns)
                for piece, span in pieces
            ]
        )

    def append(self, chunk: Chunk) -> None:
        """Add the rows of another call, and its new keys."""
        self._chunks.append(chunk)
        self._rows += chunk.query.shape[2]
        self._keys += chunk.key.shape[2]

    def has_keys(self, key: Tensor, first: int = 0) -> bool:
        """True if these are the recorded keys from ``first`` on, bit for bit."""
        chunks = self._chunks
        if len(chunks) > MOST_CHUNKS or any(chunk.order is not None for chunk in chunks):
            chunks = [self._merged()]
        place = -first
        for chunk in chunks:
            known = chunk.key[:, :, max(-place, 0) :]
            start = max(place, 0)
            if known.shape[2] and not torch.equal(key[:, :, start : start + known.shape[2]], known):
                return False
            place += chunk.key.shape[2]
        return place == key.shape[2]

    def copy(self) -> LayerRecord:
        """Another record with the same rows so far; tensors are shared, as none is written to."""
        now = self._merged()
        tensors = {name: getattr(now, name) for name in TENSORS}
        copied = LayerRecord(
            self.facts, **tensors, sinks=self.sinks, pieces=list(self._pieces),
            head_numbers=self.head_numbers,
        )  # fmt: skip
        copied.settle = self.settle
        return copied

    def replace_keys(self, key: Tensor, value: Tensor | None, probe: Tensor | None) -> None:
        """All keys anew: rows of different lengths wrote into the middle of their cache."""
        self._chunks = [self._merged().changed(key=key, value=value, value_probe=probe)]
        self._keys = key.shape[2]

    def forget_padding(self, lengths: Int[Tensor, " batch"]) -> None:
        """Rows that stood at padding, behind each sequence's length, see nothing from now on.

        Their keys are about to be written over by the sequence's next tokens.
        """
        now, pieces, first = self._merged(), [], 0
        padding = torch.zeros(now.logsum.shape[0], self.rows, dtype=torch.bool)
        for piece in self._pieces:
            mask = piece.mask
            if mask is not None and mask.dense is None:
                behind = (mask.high > lengths[:, None]).to(padding.device)
                padding[:, first : first + piece.rows] = behind
                high = mask.high.masked_fill(behind.to(mask.high.device), 0)
                low = mask.low.expand_as(high).masked_fill(behind.to(mask.high.device), 0)
                piece = replace(piece, mask=replace(mask, low=low, high=high))
            pieces.append(piece)
            first += piece.rows
        self._pieces = pieces
        rows = padding.to(now.logsum.device)[:, None]
        output, probe = (
            None if part is None else part.masked_fill(rows[..., None], 0.0)
            for part in (now.output, now.output_probe)
        )
        logsum = now.logsum.masked_fill(rows, 0.0)
        self._chunks = [now.changed(logsum=logsum, output=output, output_probe=probe)]

    def truncate(self, rows: int, keys: int) -> None:
        """Forget later rows and keys: the model's cache was cropped."""
        now, left, kept = self._merged(), rows, []
        for piece in self._pieces:
            if left > 0:
                piece_rows = piece.rows
                piece = piece if piece.rows <= left else piece.first_rows(left)
                kept.append(piece if piece.keys <= keys else crop_keys(piece, keys))
                left -= piece_rows
        self._pieces = kept
        cut: dict[str, Any] = {}
        for name in TENSORS:
            part, last = getattr(now, name), keys if name in PER_KEY else rows
            cut[name] = None if part is None else part[:, :, :last]
        self._chunks = [now.changed(**cut)]
        self._rows, self._keys = rows, keys

    def _pieces_of(self, rows: range) -> list[tuple[RowRules, range]]:
        """The pieces that hold these rows, each with the rows as it counts them."""
        self._merged()
        found, first = [], 0
        for piece in self._pieces:
            start, stop = max(rows.start - first, 0), min(rows.stop - first, piece.rows)
            if start < stop:
                found.append((piece, range(start, stop)))
            first += piece.rows
        return found

    def _merged(self) -> Chunk:
        """All chunks concatenated; a sequence that continued another one (beams) gets its past."""
        self.settle()
        if len(self._chunks) == 1:
            return self._chunks[0]
        chunks, pieces = [self._chunks[-1]], [self._chunks[-1].piece]
        order = self._chunks[-1].order
        for chunk in reversed(self._chunks[:-1]):
            first = chunk is self._chunks[0]
            held = list(self._pieces) if first else [chunk.piece]
            if order is not None:
                chunks.append(reordered(chunk, order))
                held = [piece.take(order) for piece in held]
                order = order if chunk.order is None else chunk.order[order]
            else:
                chunks.append(chunk)
                order = chunk.order
            pieces = held + pieces
        chunks.reverse()
        self._pieces = joined_rules(pieces)
        self._chunks = [concatenated(chunks, self._pieces[0])]
        return self._chunks[0]


def _settled() -> None:
    """Nothing waits."""


def _piece_mask(piece: RowRules, batch: int, rows: range, columns: range) -> Tensor | None:
    """The mask of a block; keys that came after the piece were not there to be seen."""
    there = range(columns.start, max(columns.start, min(columns.stop, piece.keys)))
    seen = None if piece.mask is None else piece.mask.block(batch, rows, there)
    missing = len(columns) - len(there)
    if missing == 0:
        return seen
    if seen is None:
        seen = torch.ones(1, len(rows), len(there), dtype=torch.bool)
    return torch.nn.functional.pad(seen, (0, missing), value=False)


def _piece_bias(piece: RowRules, batch: int, rows: range, columns: range) -> Tensor:
    assert piece.bias is not None
    there = range(columns.start, max(columns.start, min(columns.stop, piece.keys)))
    part = piece.bias.block(batch, rows, there)
    return torch.nn.functional.pad(part, (0, len(columns) - len(there)))


def _stacked(parts: list[Tensor]) -> Tensor:
    """Blocks one below the other, with as many heads as the one that has most."""
    heads = max(part.shape[0] for part in parts)
    return torch.cat([part.expand(heads, -1, -1) for part in parts], dim=1)
