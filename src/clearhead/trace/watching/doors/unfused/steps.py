"""The operations between query · key and the output, and what each does to the scores."""

from __future__ import annotations

from typing import Any

import torch

from clearhead.trace.watching.doors.unfused.arithmetic import divided, minus, plus, tanh, times
from clearhead.trace.watching.doors.unfused.dropout import bernoulli, dropped
from clearhead.trace.watching.doors.unfused.masking import assigned, at_least, filled, where
from clearhead.trace.watching.doors.unfused.moves import (
    expand,
    permute,
    same,
    together,
    transpose,
    view,
)
from clearhead.trace.watching.doors.unfused.products import (
    convolution,
    linear,
    product,
    sum_and_product,
)
from clearhead.trace.watching.doors.unfused.softmaxes import (
    exponential,
    exponential_of_two,
    log_softmax,
    power,
    row_sum,
    softmax,
)
from clearhead.trace.watching.doors.unfused.trail import Step


def _steps() -> dict[Any, Step]:
    """Each followed operation of torch, with its variants that write in place."""
    table: list[tuple[Step, str]] = [
        (product, "bmm mm"),
        (sum_and_product, "baddbmm"),
        (linear, "addmm"),
        (convolution, "convolution"),
        (times, "mul mul_ multiply"),
        (divided, "div div_ true_divide"),
        (plus, "add add_"),
        (minus, "sub sub_"),
        (tanh, "tanh tanh_"),
        (filled, "masked_fill masked_fill_"),
        (where, "where"),
        (assigned, "index_put index_put_ _index_put_impl_"),
        (at_least, "maximum clamp clamp_ clamp_min clamp_min_"),
        (same, "_to_copy clone detach alias nan_to_num nan_to_num_ lift_fresh"),
        (view, "view _unsafe_view unsqueeze squeeze _reshape_alias reshape"),
        (permute, "permute"),
        (transpose, "transpose t"),
        (expand, "expand"),
        (together, "cat stack"),
        (softmax, "_softmax _safe_softmax"),
        (log_softmax, "_log_softmax"),
        (exponential, "exp exp_"),
        (exponential_of_two, "exp2 exp2_"),
        (power, "pow"),
        (row_sum, "sum"),
        (dropped, "native_dropout dropout"),
        (bernoulli, "bernoulli_ bernoulli"),
    ]
    return {
        getattr(torch.ops.aten, name): step
        for step, names in table
        for name in names.split()
        if hasattr(torch.ops.aten, name)
    }


STEPS = _steps()
MOVES = (view, permute, transpose, product, together, linear)  # they change what axes mean
