"""The proof that shown weights are the layer's own, on the real run.

============  ====================================================================================
row sums      Σ weight = 1; with sinks Σ weight + exp(sink − logsum) = 1; 0 for a row that sees
              nothing. Where the log-sum-exp came from the layer's kernel, a wrong mask, scale, cap
              or bias shows here.
mask          no weight where a query may not look; in a causal layer none above the diagonal
output        Σ weight · value against what the layer handed on, in a few random projections of
              both that were taken while the model ran (``proving/probes.py``)
reference     the weights of maps against those of rows and tiles, a plain softmax in float64; and
              these against the layer's output: in some rows, in short texts in all
============  ====================================================================================

The first three look at every row of every head, unless fewer are asked for: then the verdict is
"sampled". The output is the model's own, so the proof is no circle: a record whose queries, keys,
log-sum-exps, masks or values are not those of the run cannot give the same output.

How near they must come is said in ``proving/tolerance.py``. A row that differs by more than any
tolerance may hide is not exact, even if the rounding of large scores explains the difference: it is
counted as unproven. Output is measured in units of the sequence's largest (projected) value.
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
from clearhead.trace.proving.probes import project
from clearhead.trace.proving.recomputed import recomputed
from clearhead.trace.proving.tolerance import Tolerance, rounding, tolerance_of
from clearhead.trace.record import LayerRecord
from clearhead.trace.workers import run_in_threads

CHUNK_WEIGHTS = 1 << 21  # weights that are compared at once
REFERENCE_ROWS = 3  # of each head, whose shown weights are compared with float64
ALL_SHOWN = 1 << 14  # weights of a head up to which all of its shown rows are compared


@dataclass(frozen=True)
class LayerProof:
    """One layer's verdict, with the largest difference found in each check."""

    name: str
    rows: int  # compared, over all heads and sequences
    row_sums: float
    above_mask: float
    output: float | None  # None: neither projections nor values were kept
    reference: float
    blind_rows: int  # of the compared: they see nothing and sum to 0
    sinks: bool  # rows sum to less than 1: the sink takes the rest
    tolerance: Tolerance
    reason: str  # why it fails; "" if it does not
    of_rows: int  # how many rows there are
    unproven: int = 0  # rows whose output is not a number, or that only large scores may explain

    @property
    def agrees(self) -> bool:
        """True if nothing that was compared differs."""
        return not self.reason

    @property
    def exact(self) -> bool:
        """The verdict: every row was compared with the layer's own output, and agrees."""
        return self.verdict == "exact"

    @property
    def verdict(self) -> str:
        """ "exact"; "sampled", if only some rows were compared; "consistent", if the layer's output
        was not seen, is not a number where weights are, or is near only for scores that large;
        "FAILS"."""
        if not self.agrees:
            return "FAILS"
        if self.rows < self.of_rows:
            return "sampled"
        return "exact" if self.output is not None and not self.unproven else "consistent"

    def __str__(self) -> str:
        why = f": {self.reason}" if self.reason else ""
        return f"{self.name}: {self.verdict}{why}; {_figures([self])}"


@dataclass(frozen=True)
class Proof:
    """Every layer's proof; ``str`` makes the stamp that views print."""

    layers: list[LayerProof]

    @property
    def exact(self) -> bool:
        """True if every row of every layer was compared with the layer's output, and agrees."""
        return all(layer.exact for layer in self.layers)

    @property
    def agrees(self) -> bool:
        """True if nothing that was compared differs."""
        return not self.failed

    @property
    def failed(self) -> list[LayerProof]:
        """The layers in which something differs."""
        return [layer for layer in self.layers if not layer.agrees]

    def __repr__(self) -> str:
        return f"Proof({self})"

    def __str__(self) -> str:
        count = len(self.layers)
        if self.agrees:
            verdicts = {layer.verdict for layer in self.layers}
            worst = next(v for v in ("sampled", "consistent", "exact") if v in verdicts)
            return f"{worst}: {count} layer{'s' * (count != 1)}; {_figures(self.layers)}"
        first = self.failed[0]
        return (
            f"NOT exact: {len(self.failed)} of {count} layers fail, first {first.name}: "
            f"{first.reason}"
        )


def prove(records: Sequence[LayerRecord], rows: int | None) -> Proof:
    """Compare every row; or ``rows`` rows of each head and sequence, evenly spaced."""
    if rows is not None and (isinstance(rows, bool) or not isinstance(rows, int) or rows < 1):
        raise InputError(
            f"rows counts sampled rows and must be 1 or more, or None; got {shown(rows)}."
        )
    proofs: dict[int, LayerProof] = {}

    def fill(number: int) -> None:
        with torch._C._DisableAutocast():  # of whoever asks
            proofs[number] = _prove_layer(records[number], rows)

    run_in_threads(fill, range(len(records)), records[0].query.device)
    return Proof([proofs[number] for number in range(len(records))])


class _Findings:
    """The largest differences so far, measured by how much rows of their scores may round."""

    def __init__(self, tolerance: Tolerance) -> None:
        self.tolerance = tolerance
        self.rows = self.blind = self.unproven = 0
        self.sums = self.above = self.output = self.reference = 0.0
        self.output_itself = 0.0  # measured by the largest value alone

    def compare_output(self, differences: Tensor, wider: Tensor) -> int:
        """Returns how many rows only their large scores excuse: these prove nothing."""
        scaled = differences / wider[..., None]
        self.output = _worst(self.output, scaled)
        self.output_itself = _worst(self.output_itself, differences)
        near = scaled.abs() <= self.tolerance.output
        far = differences.abs() > self.tolerance.largest
        return int((near & far).any(dim=-1).sum())

    def excused(self, differences: Tensor, wider: Tensor) -> Tensor:
        """Where a row is near for its large scores alone."""
        off = differences.abs().amax(dim=-1)
        return (off > self.tolerance.output) & (off <= self.tolerance.output * wider)


def _prove_layer(record: LayerRecord, rows: int | None) -> LayerProof:
    batch, heads, queries, _ = record.query.shape
    sampled = _evenly_spaced(queries, rows)
    probes = _probes(record)
    found = _Findings(tolerance_of(record))
    for sequence in range(batch):
        sizes = None if probes is None else _sizes(probes[0][sequence], heads)
        for some in _blocks(sampled, record.key.shape[2]):
            _compare(record, sequence, some, probes, sizes, found)
        short = queries * record.key.shape[2] <= ALL_SHOWN
        shown_rows = sampled if short else _evenly_spaced(queries, REFERENCE_ROWS)
        logsum = record.logsum[sequence][:, shown_rows].double()
        wider = rounding(record, sequence, shown_rows, logsum)
        for head in range(heads):
            exact, own = ExactHead(record, sequence, head), _of_head(probes, sequence, head)
            _compare_shown(exact, shown_rows, own, wider[head], found)
    return LayerProof(
        record.facts.name, found.rows, found.sums, found.above,
        None if probes is None else found.output_itself, found.reference, found.blind,
        record.sinks is not None, found.tolerance, _reason(record, found),
        batch * heads * queries, found.unproven,
    )  # fmt: skip


def _probes(record: LayerRecord) -> tuple[Tensor, Tensor] | None:
    """Projections of values and outputs; None if the layer's output was not seen."""
    if record.value_probe is not None and record.output_probe is not None:
        return record.value_probe, record.output_probe
    if record.value is not None and record.output is not None:
        return project(record.value), project(record.output)
    return None


def _sizes(probe: Float[Tensor, "value_head key probe"], heads: int) -> Float[Tensor, " head"]:
    """The largest projected value of each head: the unit of differences."""
    largest = probe.detach().double().abs().nan_to_num(0.0).amax(dim=(1, 2))
    return largest.repeat_interleave(heads // probe.shape[0]).clamp(min=1e-30)


def _evenly_spaced(queries: int, rows: int | None) -> list[int]:
    """The first row, the last, and others evenly between."""
    if rows is None or rows >= queries:
        return list(range(queries))
    if rows == 1:
        return [queries - 1]
    return sorted({round(i * (queries - 1) / (rows - 1)) for i in range(rows)})


def _blocks(rows: list[int], keys: int) -> list[list[int]]:
    """Runs of rows, or scattered rows, of which all heads fit into memory at once."""
    step = max(1, CHUNK_WEIGHTS // max(1, keys))
    return [rows[start : start + step] for start in range(0, len(rows), step)]


def _compare(
    record: LayerRecord,
    batch: int,
    rows: list[int],
    probes: tuple[Tensor, Tensor] | None,
    sizes: Tensor | None,
    found: _Findings,
) -> None:
    """Some rows of all heads: the log-sum-exp, the mask, and the projected output."""
    again = recomputed(record, batch, rows, None if probes is None else probes[0][batch])
    recorded = record.logsum[batch, :, rows].double()
    blind = again.blind.expand(recorded.shape)
    found.rows += recorded.numel()
    found.blind += int(blind.sum())
    wider = rounding(record, batch, rows, recorded)
    own = None if probes is None else probes[1][batch][:, rows].double()
    # A model whose row is not a number says nothing to compare with: a softmax of nothing is NaN in
    # some models, and so is whatever attends to it in the next layer.
    nothing = recorded.isnan() if own is None else own.isnan().any(dim=-1)
    found.unproven += int((nothing & ~recorded.isnan()).sum())
    off = torch.expm1((again.logsum - recorded).nan_to_num(torch.inf, torch.inf, torch.inf))
    off = torch.where(blind, recorded, off / wider)
    found.sums = _worst(found.sums, torch.where(nothing, 0.0, off))
    found.above = max(found.above, again.above_diagonal)
    if own is not None and again.output is not None and sizes is not None:
        output = again.output
        excused = found.excused((output - own) / sizes[:, None, None], wider)
        if probes is not None and bool(excused.any()):
            output = _in_float64(record, batch, rows, probes, output, excused)
        differences = (output - own) / sizes[:, None, None]
        off = torch.where(nothing[..., None], 0.0, differences)
        found.unproven += found.compare_output(off, wider)


def _in_float64(
    record: LayerRecord,
    batch: int,
    rows: list[int],
    probes: tuple[Tensor, Tensor],
    output: Float[Tensor, "head row probe"],
    wanted: Bool[Tensor, "head row"],
) -> Float[Tensor, "head row probe"]:
    """The projected output, in some rows by the weights that are shown of them."""
    output = output.clone()
    for head in wanted.any(dim=1).nonzero().flatten().tolist():
        places = wanted[head].nonzero().flatten()
        some = Positions.at(torch.tensor(rows)[places.cpu()])
        value = probes[0][batch, head // (len(output) // probes[0].shape[1])].double()
        weights = ExactHead(record, batch, head).plain(some).nan_to_num(0.0)
        output[head, places] = (weights @ value.to(weights.device)).to(output.device)
    return output


def _of_head(
    probes: tuple[Tensor, Tensor] | None, batch: int, head: int
) -> tuple[Tensor, Tensor] | None:
    if probes is None:
        return None
    value, output = (probe[batch].double() for probe in probes)
    return value[head // (output.shape[0] // value.shape[0])], output[head]


def _compare_shown(
    exact: ExactHead,
    rows: list[int],
    probes: tuple[Tensor, Tensor] | None,
    wider: Float[Tensor, " row"],
    found: _Findings,
) -> None:
    """What views show: maps against rows, and rows against the layer's own output."""
    places = Positions.at(torch.tensor(rows))
    shown = exact.weights(places, Positions(range(exact.key.shape[0]))).double()
    sums, plain = exact.logsums(places).double()[:, None], exact.plain(places)
    unknown = sums.isnan() | shown.isnan().any(dim=1, keepdim=True)
    off = torch.where(unknown, 0.0, (shown - plain) / wider[:, None])
    found.reference = _worst(found.reference, off)
    if probes is None:
        return
    value, own = probes[0].nan_to_num(0.0), probes[1][rows]
    unit = value.abs().max().clamp(min=1e-30)
    off = torch.where(own.isnan(), 0.0, (plain.nan_to_num(0.0) @ value - own) / unit)
    found.unproven = max(found.unproven, found.compare_output(off, wider))  # counted already


def _worst(so_far: float, differences: Tensor) -> float:
    if bool(differences.isnan().any()):
        return float("inf")
    return max(so_far, float(differences.abs().max())) if differences.numel() else so_far


def _reason(record: LayerRecord, found: _Findings) -> str:
    """The first check that failed, in words; "" if none did."""
    tolerance = found.tolerance
    if max(found.above, found.reference, found.output) == float("inf"):
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
    unproven = sum(layer.unproven for layer in layers)
    if unproven:
        parts.append(f"{unproven:,} rows cannot be compared")
    return f"{', '.join(parts)} ({sum(layer.rows for layer in layers):,} rows)"


def _above(largest: float) -> str:
    return "nothing above the mask" if largest == 0 else f"{largest:.0e} above the mask"
