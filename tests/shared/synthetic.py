"""Records of heads that never ran: random q, k, v with any rules, and their weights in float64."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from clearhead.text.token import Token
from clearhead.trace.passage import Passage
from clearhead.trace.record import LayerFacts, LayerRecord
from clearhead.trace.row_rules import RowBias, RowMask, RowRules


@dataclass(frozen=True)
class Options:
    seed: int = 0
    batch: int = 1
    kv_heads: int = 1
    group: int = 1
    queries: int = 11
    keys: int = 11
    key_dim: int = 5
    value_dim: int = 7
    causal: bool = False
    window: int | None = None
    padded: bool = False  # the last sequence of the batch has padding, at the front
    dense: bool = False  # a mask for each head that fits no rule
    bias: str | None = None  # "key", "distance", "dense"
    softcap: float | None = None
    sinks: bool = False
    blind: bool = False  # the second row sees nothing
    dtype: torch.dtype = torch.float32
    spread: float = 1.0  # of the scores
    name: str = "L0"
    kind: str = "self"
    values: bool = True

    @property
    def heads(self) -> int:
        return self.kv_heads * self.group


@dataclass(frozen=True)
class Synthetic:
    """A record and, in float64, what its weights and output must be: (batch, head, query, …)."""

    record: LayerRecord
    weights: Tensor
    output: Tensor


def synthetic(options: Options) -> Synthetic:
    make = torch.Generator().manual_seed(options.seed)
    o = options
    query = torch.randn(o.batch, o.heads, o.queries, o.key_dim, generator=make) * o.spread
    key = torch.randn(o.batch, o.kv_heads, o.keys, o.key_dim, generator=make)
    value = torch.randn(o.batch, o.kv_heads, o.keys, o.value_dim, generator=make)
    query, key, value = (part.to(o.dtype) for part in (query, key, value))
    sinks = torch.randn(o.heads, generator=make) if o.sinks else None
    piece = RowRules(o.queries, o.keys, _mask(o, make), _bias(o, make))
    scale = 0.7
    scores = query.double() @ key.double().repeat_interleave(o.group, 1).transpose(2, 3) * scale
    if o.softcap is not None:
        scores = o.softcap * torch.tanh(scores / o.softcap)
    visible, added = _spelled(piece, o)
    scores = (scores + added).masked_fill(~visible, -torch.inf)
    column = torch.full((o.batch, o.heads, o.queries, 1), -torch.inf, dtype=torch.float64)
    if sinks is not None:
        column = sinks.double()[:, None, None].expand_as(column)
    joined = torch.cat([scores, column], dim=3)
    weights = torch.softmax(joined, dim=3).nan_to_num(0.0)[..., :-1]
    logsum = torch.logsumexp(joined, dim=3)
    logsum = torch.where(logsum == -torch.inf, 0.0, logsum)
    output = weights @ value.double().repeat_interleave(o.group, 1)
    facts = LayerFacts(
        o.name, "model.layers.0", "cross" if o.kind == "cross" else "self", o.causal, o.heads,
        o.kv_heads, o.key_dim, o.value_dim, scale, o.softcap, o.dtype, "",
    )  # fmt: skip
    wide = torch.float64 if o.dtype == torch.float64 else torch.float32
    record = LayerRecord(
        facts, query, key, logsum.to(wide), value=value if o.values else None,
        output=output.to(o.dtype) if o.values else None, sinks=sinks, pieces=[piece],
    )  # fmt: skip
    return Synthetic(record, weights, output)


def _mask(o: Options, make: torch.Generator) -> RowMask | None:
    ends = torch.arange(o.queries) + o.keys - o.queries + 1
    high = ends.clamp(min=0) if o.causal else torch.full((o.queries,), o.keys)
    low = torch.zeros(o.queries, dtype=torch.long)
    if o.window is not None:
        low = (ends - o.window).clamp(min=0)
    if o.blind and o.queries > 1:
        low[1], high[1] = 0, 0
    low, high = low.expand(o.batch, -1).clone(), high.expand(o.batch, -1).clone()
    real = None
    if o.padded:
        real = torch.ones(o.batch, o.keys, dtype=torch.bool)
        real[-1, : o.keys // 3] = False
    dense = None
    if o.dense:
        shape = (o.batch, o.heads, o.queries, o.keys)
        dense = torch.rand(shape, generator=make) > 0.4
    elif not (o.causal or o.window is not None or o.padded or o.blind):
        return None
    return RowMask(low, high, real, None, dense)


def _bias(o: Options, make: torch.Generator) -> RowBias | None:
    if o.bias == "key":
        return RowBias(torch.randn(1, o.heads, 1, o.keys, generator=make))
    if o.bias == "distance":
        table = torch.randn(1, o.heads, o.queries + o.keys - 1, generator=make)
        return RowBias(diagonals=table, origin=o.queries - 1)
    if o.bias == "dense":
        return RowBias(torch.randn(o.batch, o.heads, o.queries, o.keys, generator=make))
    return None


def _spelled(piece: RowRules, o: Options) -> tuple[Tensor, Tensor]:
    """Mask and bias cell by cell, by loops that share nothing with the code under test."""
    shape = (o.batch, o.heads, o.queries, o.keys)
    visible, added = torch.ones(shape, dtype=torch.bool), torch.zeros(shape, dtype=torch.float64)
    mask, bias = piece.mask, piece.bias
    if mask is not None and mask.dense is not None:
        visible = mask.dense
    elif mask is not None:
        low, high = mask.low.tolist(), mask.high.tolist()
        real = [[True] * o.keys] * o.batch if mask.real is None else mask.real.tolist()
        cells = [
            [[low[b][i] <= j < high[b][i] and real[b][j] for j in range(o.keys)]
             for i in range(o.queries)]
            for b in range(o.batch)
        ]  # fmt: skip
        visible = torch.tensor(cells)[:, None].expand(shape)
    if bias is not None and bias.diagonals is not None:
        table = bias.diagonals[0].tolist()
        added = added + torch.tensor(
            [[[row[j - i + bias.origin] for j in range(o.keys)] for i in range(o.queries)]
             for row in table], dtype=torch.float64,
        )  # fmt: skip
    elif bias is not None and bias.numbers is not None:
        added = added + bias.numbers.double()
    return visible, added


def passage(pieces: str | list[str]) -> Passage:
    """Tokens that read like these pieces (a text is cut at its bars); ``[CLS]`` … are special."""
    text, tokens = "", []
    for number, piece in enumerate(pieces.split("|") if isinstance(pieces, str) else pieces):
        special = piece.startswith("[")
        start, text = len(text), text if special else text + piece
        tokens.append(Token(number, piece, start, len(text), special))
    return Passage(text, tuple(tokens))
