"""Numbers that can be shown: finite ones. A run can overflow, and a trace file can be damaged.

Rows and tiles of a trace give whatever the trace holds; looks and step tables refuse it, because
no picture has a colour for NaN.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from clearhead.errors import InputError
from clearhead.trace.record import LayerRecord

LARGEST = 1e30  # products of two numbers below its root stay finite in float32


def require_finite_record(record: LayerRecord) -> None:
    """Refuse a layer whose vectors, or scores of them, are no finite numbers.

    Raises:
        InputError: names the layer and the tensor.
    """
    parts = {name: getattr(record, name) for name in ("query", "key", "logsum", "value", "sinks")}
    most = {name: _largest(part) for name, part in parts.items() if part is not None}
    for name, largest in most.items():
        if not largest < LARGEST:
            raise _refused(record.facts.name, name)
    score = most["query"] * most["key"] * record.facts.key_dim * abs(record.facts.scale)
    if not score < LARGEST:
        raise _refused(record.facts.name, "scores")


def require_finite(numbers: Tensor, layer: str, what: str) -> None:
    """Refuse computed numbers that are not all finite."""
    if numbers.numel() and not _largest(numbers) < LARGEST:
        raise _refused(layer, what)


def _largest(tensor: Tensor) -> float:
    """The largest absolute value; NaN if there is one."""
    if not tensor.numel():
        return 0.0
    low, high = torch.aminmax(tensor.detach())
    ends = (abs(float(low)), abs(float(high)))
    return math.nan if math.isnan(sum(ends)) else max(ends)


def _refused(layer: str, what: str) -> InputError:
    return InputError(
        f"{layer}: its {what} are infinite, NaN or beyond all measure, and cannot be shown.",
        hint="the run overflowed, or the trace was damaged: seen.verify() compares every layer.",
    )
