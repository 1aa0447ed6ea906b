"""The step table of one query of a watched run, from the layer's own q, k and v."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from clearhead.explain.finite import require_finite, require_finite_record
from clearhead.explain.head_outputs import head_outputs
from clearhead.explain.pictures import Mark
from clearhead.explain.step_table import Sink, StepRow, StepTable, vector
from clearhead.trace.exact import ExactHead
from clearhead.trace.head_view import HeadView
from clearhead.trace.proof import LayerProof, Proof
from clearhead.trace.record import LayerRecord


def head_steps(
    view: HeadView,
    mark: Mark,
    columns: Sequence[Mark],
    *,
    model: nn.Module | None = None,
    proof: Proof | None = None,
    missed: str = "",
) -> StepTable:
    """Make the table of the query at the mark's last token; ``columns`` are tokens, ``missed`` is
    what the watch did not see."""
    row, record = mark.tokens[-1], view.record
    require_finite_record(record)
    head = ExactHead(record, view.batch, view.places[0])
    query, keys = head.query[row].double().cpu(), head.key.double().cpu()
    scores = keys @ query
    scaled = scores * head.scale
    cap = head.softcap
    capped = None if cap is None else cap * torch.tanh(scaled / cap)
    bias = _bias(record, view.batch, head, row)
    weights = view.weights(row, None, limit=None).double().cpu()
    require_finite(weights, record.facts.name, "weights")
    values = None if head.value is None else head.value.double().cpu()
    reasons = _reasons(record, view.batch, view.places[0], row, columns)
    rows = tuple(
        StepRow(
            word=column.text,
            key=vector(keys[place]),
            value=() if values is None else vector(values[place]),
            score=float(scores[place]),
            scaled=float(scaled[place]),
            masked=reasons[place],
            weight=float(weights[place]),
            weighted=() if values is None else vector(weights[place] * values[place]),
            capped=None if capped is None else float(capped[place]),
            bias=None if bias is None else float(bias[place]),
        )
        for place, column in enumerate(columns)
    )
    layer = replace(view, places=tuple(range(len(record.head_numbers))), single=False)
    return StepTable(
        title=f"{view.name}: where “{mark.text}” looks",
        word=mark.text,
        query=vector(query),
        rows=rows,
        scale=head.scale,
        output=() if values is None else vector(weights @ values),
        head=view.name,
        softcap=cap,
        sink=_sink(record, view.batch, view.places[0], row),
        outputs=head_outputs(layer, row, model),
        proof=_proof_of(proof, record.facts.name),
        notes=(*_notes(record, mark, model), *([missed] if missed else [])),
    )


def _bias(record: LayerRecord, batch: int, head: ExactHead, row: int) -> Tensor | None:
    bias = head.rules.bias(batch, range(row, row + 1), range(record.key.shape[2]))
    return None if bias is None else bias[head.head if bias.shape[0] > 1 else 0, 0].double().cpu()


def _sink(record: LayerRecord, batch: int, place: int, row: int) -> Sink | None:
    if record.sinks is None:
        return None
    score = float(record.sinks[place])
    exponent = score - float(record.logsum[batch, place, row])
    return Sink(score, math.exp(min(exponent, 700.0)))  # a forged log-sum-exp must not overflow


def _reasons(
    record: LayerRecord, batch: int, place: int, row: int, columns: Sequence[Mark]
) -> list[str]:
    """For each column the reason why the query may not attend to it; "" where it may."""
    keys = len(columns)
    seen = record.visible(batch, range(row, row + 1), range(keys))
    if seen is None:
        return [""] * keys
    open_columns = seen[place if seen.shape[0] > 1 else 0, 0].tolist()
    first = open_columns.index(True) if any(open_columns) else 0
    own = row + keys - record.query.shape[2] if record.facts.kind == "self" else keys
    return [
        "" if may else _reason(column, columns[column], first, own, record.facts.causal)
        for column, may in enumerate(open_columns)
    ]


def _reason(column: int, mark: Mark, first: int, own: int, causal: bool) -> str:
    if mark.special and mark.text.casefold() == "⟨pad⟩":
        return "padding"
    if causal and column > own:
        return "future"
    if causal and column < first:
        return "window"
    return "mask"


def _proof_of(proof: Proof | None, layer: str) -> LayerProof | None:
    if proof is None:
        return None
    return next((one for one in proof.layers if one.name == layer), None)


def _notes(record: LayerRecord, mark: Mark, model: nn.Module | None) -> tuple[str, ...]:
    notes = []
    if len(mark.tokens) > 1:
        notes.append(f"“{mark.text}” has {len(mark.tokens)} tokens; this is the query of the last.")
    if _rotates(model, record.facts.path):
        notes.append("q and k are shown after rotary: rotated by their positions.")
    if record.facts.kind == "cross":
        notes.append("k and v come from the source; q from the query that wrote the word.")
    if record.value is None:
        notes.append("Values were not kept: watch(model, values=True) keeps them.")
    return (*notes, *([record.facts.note] if record.facts.note else []))


def _rotates(model: nn.Module | None, path: str) -> bool:
    if model is None:
        return False
    module = dict(model.named_modules()).get(path)
    return getattr(module, "rotary", None) is not None
