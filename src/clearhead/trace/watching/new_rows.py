"""The rows of one attention call, ready to be recorded."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from clearhead.trace.chunks import Chunk, LaterSums, Parents
from clearhead.trace.proving.probes import project
from clearhead.trace.row_rules import RowRules, crop_keys, filled_keys
from clearhead.trace.watching.log_sum_exp import later_sums, log_sum_exp, plain_sums
from clearhead.trace.watching.mask_rules import CallRules
from clearhead.trace.watching.observed_call import ObservedCall
from clearhead.trace.watching.sample_check import blocks, formula_weights

Keep: TypeAlias = Callable[[Tensor], Tensor]  # the same numbers, safe from later changes


@dataclass(frozen=True)
class NewRows:
    """The rows of one attention call, ready to be recorded, with every key that the call had."""

    query: Float[Tensor, "batch head query key_dim"]
    key: Float[Tensor, "batch kv_head key key_dim"]
    value: Float[Tensor, "batch kv_head key value_dim"] | None
    logsum: Float[Tensor, "batch head query"] | LaterSums
    output: Float[Tensor, "batch head query value_dim"] | None
    piece: RowRules
    cross: bool
    forward: int  # the number of the model's forward in which the call ran
    value_probe: Float[Tensor, "batch kv_head key probe"] | None = None
    output_probe: Float[Tensor, "batch head query probe"] | None = None
    scale: float | None = None
    softcap: float | None = None

    @property
    def past(self) -> int:
        """The number of keys before those of the new rows."""
        return self.key.shape[2] - self.query.shape[2]

    @property
    def joins(self) -> bool:
        """True if its rules are those of plain rows, to which later rows are simply added."""
        mask = self.piece.mask
        return self.piece.bias is None and (mask is None or mask.dense is None)

    def chunk(self, known: int, parents: Parents, keep: Keep) -> Chunk:
        """The part that a record does not have yet: the rows, and the keys from ``known`` on."""
        value = None if self.value is None else keep(self.value[:, :, known:])
        output = None if self.output is None else keep(self.output)
        probe = self.value_probe
        sums = self.logsum.tensor() if isinstance(self.logsum, LaterSums) else self.logsum
        return Chunk(
            keep(self.query),
            keep(self.key[:, :, known:]),
            value,
            keep(sums),
            output,
            self.piece,
            parents,
            None if probe is None else probe[:, :, known:],
            self.output_probe,
        )


def new_rows(
    observed: ObservedCall,
    rules: CallRules,
    cross: bool,
    chosen: list[int] | None,
    forward: int,
    *,
    values: bool,
) -> NewRows:
    """The call as it is recorded: its mask as rules, a log-sum-exp, only the chosen heads."""
    piece, query = rules.piece, observed.query.detach()
    logsum: Tensor | LaterSums
    if chosen is None and _follow_from_rules(observed, rules):
        logsum = later_sums(query, observed.key.detach(), piece, observed)
    else:
        sums = log_sum_exp(observed) if observed.logsum is None else observed.logsum.detach()
        query, sums = _with_uniform_rows(query, sums, rules)
        logsum = _with_nan_rows(observed, sums)
    key, value, output = observed.key.detach(), observed.value, observed.output
    value = None if value is None else value.detach()
    whole = cross or (observed.from_start and observed.mask is None)  # no cache to be filled
    filled = None if whole else filled_keys(piece)
    if filled is not None and observed.spelled:  # weights may be 0 where nothing is hidden
        filled = max(filled, _last_written(key))
    if filled is not None:
        key, piece = key[:, :, :filled], crop_keys(piece, filled)
        value = None if value is None else value[:, :, :filled]
    if observed.dropout and value is not None:
        # What the layer hands on is random; its own weights were compared when it ran.
        output = _before_dropout(observed)
    if chosen is not None:
        heads = observed.query.shape[1]
        value, output = (_of_heads(part, chosen, heads) for part in (value, output))
        query, key = _some_heads(query, chosen, heads), _some_heads(key, chosen, heads)
        assert isinstance(logsum, Tensor)
        logsum, piece = logsum[:, chosen], piece.heads(chosen)
    proven = output is not None and value is not None
    return NewRows(
        query,
        key,
        value if values else None,
        logsum,
        None if output is None or not values else output.detach(),
        piece,
        cross,
        forward,
        value_probe=project(value) if proven and value is not None else None,
        output_probe=project(output) if proven and output is not None else None,
        scale=observed.scale,
        softcap=observed.softcap,
    )


def _before_dropout(observed: ObservedCall) -> Tensor:
    """Σ weight · value as the layer would have it without dropout: by the model's own weights, or
    by those of the formula, which were compared with what dropout left of them."""
    assert observed.value is not None
    wide = torch.promote_types(observed.value.dtype, torch.float32)
    group = observed.query.shape[1] // observed.value.shape[1]
    value = observed.value.detach().to(wide).repeat_interleave(group, dim=1)
    own = observed.undropped
    if own is not None:
        return own.detach()[..., : value.shape[2]].to(wide) @ value
    parts = [formula_weights(observed, rows).to(wide) @ value for rows in blocks(observed)]
    return torch.cat(parts, dim=2)


def _last_written(key: Tensor) -> int:
    """How many keys there are up to the last that is not zeros, as those of an empty cache are."""
    there = key.ne(0).any(dim=3).any(dim=1).any(dim=0).nonzero()
    return int(there.max()) + 1 if len(there) else 0


def _of_heads(part: Tensor | None, chosen: list[int], heads: int) -> Tensor | None:
    return None if part is None else _some_heads(part, chosen, heads)


def _some_heads(part: Tensor, chosen: list[int], heads: int) -> Tensor:
    """The chosen heads, or the shared ones that they use."""
    group = heads // part.shape[1]
    return part[:, [head // group for head in chosen]]


def _follow_from_rules(observed: ObservedCall, rules: CallRules) -> bool:
    """True if the sums can be computed later, from queries, keys and plain rules alone."""
    piece, output = rules.piece, observed.output
    if observed.logsum is not None or rules.uniform is not None or rules.blind:
        return False
    if piece.bias is not None or (piece.mask is not None and piece.mask.dense is not None):
        return False
    return filled_keys(piece) is None and (output is None or not has_nan(output))


def has_nan(tensor: Tensor) -> bool:
    """True if some number is none. A sum costs little, and is a number if all of them are."""
    total = float(tensor.detach().sum())
    return not math.isfinite(total) and bool(tensor.isnan().any())


def _with_nan_rows(observed: ObservedCall, logsum: Tensor) -> Tensor:
    """A row whose own weights are not numbers has a log-sum-exp that is none."""
    weights, output = observed.weights, observed.output
    if weights is None or output is None or not has_nan(output):
        return logsum
    unknown = weights.detach().isnan().any(dim=-1)
    if unknown.shape != logsum.shape:
        return logsum
    if bool((logsum.isnan() & ~unknown).any()):  # a hidden key that is no number: kernels stumble
        logsum = torch.where(logsum.isnan(), plain_sums(observed).to(logsum.dtype), logsum)
    return logsum.masked_fill(unknown, torch.nan)


def _with_uniform_rows(query: Tensor, logsum: Tensor, rules: CallRules) -> tuple[Tensor, Tensor]:
    """Rows in which a finite number masks every key: the model attends equally to some keys."""
    if rules.uniform is None or rules.equal_keys is None:
        return query, logsum
    uniform = rules.uniform.expand(logsum.shape)
    equal = rules.equal_keys.to(logsum.dtype).log().expand(logsum.shape)
    return query.masked_fill(uniform[..., None], 0.0), torch.where(uniform, equal, logsum)
