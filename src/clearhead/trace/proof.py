"""The proof that shown weights are the layer's own, on the real run.

============  ====================================================================================
row sums      Σ weight = 1; with sinks Σ weight + exp(sink − logsum) = 1; 0 for a row that sees
              nothing. The log-sum-exp came from the layer's kernel, so a wrong mask, scale, cap or
              bias shows here.
mask          no weight where a query may not look; in a causal layer none above the diagonal
output        Σ weight · value against what the layer handed on (where values were kept)
reference     the same softmax, plainly, in float64 from the same q and k
============  ====================================================================================

Tolerances belong to the precision that the model computed in (:data:`TOLERANCES`). They hold for
log-sum-exps up to 100 and grow in proportion beyond (at most 100 times), as the rounding of scores
does. Half-precision kernels round their output, not the scores, so only the output gets the wide
margin. Output is measured in units of the sequence's largest value (or of 1, if all are smaller).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from clearhead.arguments import shown
from clearhead.errors import InputError
from clearhead.trace.exact import ExactHead, Positions
from clearhead.trace.record import LayerRecord
from clearhead.trace.workers import run_in_threads

CHUNK_WEIGHTS = 1 << 21  # weights that are compared at once


@dataclass(frozen=True)
class Tolerance:
    """The largest differences that pass."""

    sums: float
    output: float
    reference: float

    def times(self, factor: float) -> Tolerance:
        """All of them, wider."""
        return Tolerance(self.sums * factor, self.output * factor, self.reference * factor)


USUAL_LOGSUM, WIDEST = 100.0, 100.0
TOLERANCES = {
    torch.float64: Tolerance(1e-9, 1e-9, 1e-9),
    torch.float32: Tolerance(2e-5, 2e-5, 2e-5),
    torch.float16: Tolerance(1e-3, 5e-3, 1e-3),
    torch.bfloat16: Tolerance(1e-3, 3e-2, 1e-3),
}


@dataclass(frozen=True)
class LayerProof:
    """One layer's verdict, with the largest difference found in each check."""

    name: str
    rows: int  # compared, over all heads and sequences
    row_sums: float
    above_mask: float
    output: float | None  # None: values were not kept
    reference: float
    blind_rows: int  # of the compared: they see nothing and sum to 0
    sinks: bool  # rows sum to less than 1: the sink takes the rest
    tolerance: Tolerance
    reason: str  # why it fails; "" if it does not

    @property
    def exact(self) -> bool:
        """The verdict."""
        return not self.reason

    def __str__(self) -> str:
        return (
            f"{self.name}: {'exact' if self.exact else f'FAILS: {self.reason}'}; {_figures([self])}"
        )


@dataclass(frozen=True)
class Proof:
    """Every layer's proof; ``str`` makes the stamp that views print."""

    layers: list[LayerProof]

    @property
    def exact(self) -> bool:
        """True if every layer passed."""
        return all(layer.exact for layer in self.layers)

    @property
    def failed(self) -> list[LayerProof]:
        """The layers that did not."""
        return [layer for layer in self.layers if not layer.exact]

    def __repr__(self) -> str:
        return f"Proof({self})"

    def __str__(self) -> str:
        count = len(self.layers)
        if self.exact:
            return f"exact: {count} layer{'s' * (count != 1)}; {_figures(self.layers)}"
        first = self.failed[0]
        return (
            f"NOT exact: {len(self.failed)} of {count} layers fail, first {first.name}: "
            f"{first.reason}"
        )


def prove(records: Sequence[LayerRecord], rows: int | None) -> Proof:
    """Compare ``rows`` rows of each head and sequence, evenly spaced; None: all."""
    if rows is not None and (isinstance(rows, bool) or not isinstance(rows, int) or rows < 1):
        raise InputError(
            f"rows counts sampled rows and must be 1 or more, or None; got {shown(rows)}."
        )
    proofs: dict[int, LayerProof] = {}

    def fill(number: int) -> None:
        proofs[number] = _prove_layer(records[number], rows)

    run_in_threads(fill, range(len(records)), records[0].query.device)
    return Proof([proofs[number] for number in range(len(records))])


@dataclass
class _Findings:
    """The largest differences so far."""

    rows: int = 0
    blind: int = 0
    sums: float = 0.0
    above: float = 0.0
    output: float = 0.0
    reference: float = 0.0


def _prove_layer(record: LayerRecord, rows: int | None) -> LayerProof:
    batch, heads, queries, _ = record.query.shape
    sampled = _evenly_spaced(queries, rows)
    step = max(1, CHUNK_WEIGHTS // max(1, record.key.shape[2]))
    found = _Findings()
    for sequence in range(batch):
        for start in range(0, len(sampled), step):
            some = sampled[start : start + step]
            visible, bias = _rules(record, sequence, some)
            for head in range(heads):
                _compare(record, sequence, head, some, visible, bias, found)
    tolerance = _tolerance(record)
    has_output = record.value is not None and record.output is not None
    return LayerProof(
        record.facts.name, found.rows, found.sums, found.above,
        found.output if has_output else None, found.reference, found.blind,
        record.sinks is not None, tolerance, _reason(record, found, tolerance),
    )  # fmt: skip


def _evenly_spaced(queries: int, rows: int | None) -> list[int]:
    """The first row, the last, and others evenly between."""
    if rows is None or rows >= queries:
        return list(range(queries))
    if rows == 1:
        return [queries - 1]
    return sorted({round(i * (queries - 1) / (rows - 1)) for i in range(rows)})


def _rules(record: LayerRecord, batch: int, rows: list[int]) -> tuple[Tensor, Tensor]:
    """Mask and bias of scattered rows, spelled out: (1 or head, row, key)."""
    columns = range(record.key.shape[2])
    masks, biases = [], []
    for row in rows:
        seen = record.visible(batch, range(row, row + 1), columns)
        masks.append(torch.ones(1, 1, len(columns), dtype=torch.bool) if seen is None else seen)
        bias = record.bias(batch, range(row, row + 1), columns)
        biases.append(torch.zeros(1, 1, len(columns)) if bias is None else bias)
    return _joined(masks), _joined(biases)


def _joined(parts: list[Tensor]) -> Tensor:
    heads = max(part.shape[0] for part in parts)
    return torch.cat([part.cpu().expand(heads, -1, -1) for part in parts], dim=1)


def _compare(
    record: LayerRecord,
    batch: int,
    head: int,
    rows: list[int],
    visible: Bool[Tensor, "#head row key"],
    bias: Float[Tensor, "#head row key"],
    found: _Findings,
) -> None:
    exact = ExactHead(record, batch, head)
    places, keys = Positions.at(torch.tensor(rows)), exact.key.shape[0]
    weights = exact.weights(places, Positions(range(keys))).cpu().double()
    seen = visible[head if len(visible) > 1 else 0]
    added = bias[head if len(bias) > 1 else 0]
    sink = None if record.sinks is None else record.sinks[head].cpu().double()
    blind = ~seen.any(dim=1)
    sums = weights.sum(dim=1)
    if sink is not None:
        sums = sums + torch.exp(sink - exact.logsums(places).cpu().double())
    hidden = ~seen
    if record.facts.causal:
        last = torch.tensor(rows) + keys - record.query.shape[2]
        hidden = hidden | (torch.arange(keys) > last[:, None])
    found.rows, found.blind = found.rows + len(rows), found.blind + int(blind.sum())
    found.sums = _worst(found.sums, torch.where(blind, weights.sum(dim=1), sums - 1))
    found.above = _worst(found.above, weights * hidden)
    wanted = _reference(exact, places, seen, added, sink)
    found.reference = _worst(found.reference, weights - wanted)
    if exact.value is not None and record.output is not None:
        value = exact.value.cpu().double()
        own = places.of(record.output[batch, head]).cpu().double()
        size = max(1.0, float(value.abs().max()))
        found.output = _worst(found.output, (weights @ value - own) / size)


def _reference(
    head: ExactHead, rows: Positions, seen: Tensor, bias: Tensor, sink: Tensor | None
) -> Float[Tensor, "row key"]:
    """softmax(cap(scale · q · kᵀ) + bias, masked), straight from the formula, in float64."""
    scores = rows.of(head.query).cpu().double() @ head.key.cpu().double().T * head.scale
    if head.softcap is not None:
        scores = head.softcap * torch.tanh(scores / head.softcap)
    scores = (scores + bias).masked_fill(~seen, -torch.inf)
    if sink is not None:
        scores = torch.cat([scores, sink.expand(len(scores), 1)], dim=1)
    return torch.softmax(scores, dim=1).nan_to_num(0.0)[:, : seen.shape[1]]


def _worst(so_far: float, differences: Tensor) -> float:
    if bool(differences.isnan().any()):
        return float("inf")
    return max(so_far, float(differences.abs().max())) if differences.numel() else so_far


def _tolerance(record: LayerRecord) -> Tolerance:
    dtype = record.facts.dtype
    if dtype == torch.float64 and record.logsum.dtype != torch.float64:
        dtype = torch.float32
    largest = float(record.logsum.abs().max()) if record.logsum.numel() else 0.0
    factor = max(1.0, largest / USUAL_LOGSUM) if largest < float("inf") else 1.0
    return TOLERANCES.get(dtype, TOLERANCES[torch.float32]).times(min(factor, WIDEST))


def _reason(record: LayerRecord, found: _Findings, tolerance: Tolerance) -> str:
    """The first check that failed, in words; "" if none did."""
    if max(found.above, found.sums, found.reference, found.output) == float("inf"):
        return "its q, k, v or log-sum-exp hold NaN or infinity"
    if found.above > 0:
        return f"a weight of {found.above:.1g} lies where the query may not look"
    if found.sums > tolerance.sums:
        what = "with the sink's share" if record.sinks is not None else "of a row"
        return f"the sum {what} is off by {found.sums:.1g} (tolerance {tolerance.sums:.1g})"
    if found.reference > tolerance.reference:
        return (
            f"a weight differs from float64 by {found.reference:.1g} "
            f"(tolerance {tolerance.reference:.1g})"
        )
    if found.output > tolerance.output:
        return (
            f"Σ weight · value differs from the layer's output by {found.output:.1g} "
            f"(tolerance {tolerance.output:.1g})"
        )
    return ""


def _figures(layers: Sequence[LayerProof]) -> str:
    sinks = " with their sink" if any(layer.sinks for layer in layers) else ""
    parts = [
        f"rows sum to 1{sinks} ± {max(layer.row_sums for layer in layers):.0e}",
        _above(max(layer.above_mask for layer in layers)),
        f"float64 ± {max(layer.reference for layer in layers):.0e}",
    ]
    outputs = [layer.output for layer in layers if layer.output is not None]
    if outputs:
        parts.insert(2, f"Σ weight·v = output ± {max(outputs):.0e}")
    blind = sum(layer.blind_rows for layer in layers)
    if blind:
        parts.append(f"{blind:,} rows see nothing")
    return f"{', '.join(parts)} ({sum(layer.rows for layer in layers):,} rows)"


def _above(largest: float) -> str:
    return "nothing above the mask" if largest == 0 else f"{largest:.0e} above the mask"
