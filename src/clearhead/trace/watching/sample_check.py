"""The formula must give the weights that the model itself computed, or these are kept instead."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from clearhead.trace.watching.observed_call import ObservedCall

TOLERANCE = {torch.float64: 1e-9, torch.float16: 2e-2, torch.bfloat16: 3e-2}
OUTPUT_TOLERANCE = {torch.float64: 1e-9, torch.float16: 2e-2, torch.bfloat16: 5e-2}
FULL = 1 << 18  # weights up to which every row is compared at once; beyond, some rows now and all
# of them by the proof
SAMPLED_ROWS = 5
MOST_AT_ONCE = 1 << 22  # weights that are computed at once
MOST_SPELLED = 1 << 24  # weights of one call that may be kept as they came: 64 MB
UNEXPLAINED = "its output is not what its queries, keys and values give"


def checked(observed: ObservedCall) -> ObservedCall | str:
    """The call, with the model's own weights if the formula does not give them; or why not."""
    if not observed.unchecked:
        return observed
    observed = replace(observed, unchecked=False)  # other watchers compare for themselves
    if observed.weights is None:
        return observed if explains_output(observed) else UNEXPLAINED
    return observed if matches_model(observed) else spelled_out(observed)


def matches_model(observed: ObservedCall, *, full: bool = False) -> bool:
    """True if the formula gives the model's own weights; ``full``: however many there are, as
    always under dropout, where the layer's output proves nothing."""
    full = full or bool(observed.dropout)
    observed = _before_dropout(observed)
    weights = observed.weights
    if weights is None or not _fits(observed) or weights.shape[:3] != observed.query.shape[:3]:
        return False
    limit = TOLERANCE.get(observed.dtype or observed.query.dtype, 1e-5)
    if full or weights.numel() <= FULL:
        return all(_rows_match(observed, rows, limit) for rows in blocks(observed))
    if observed.rule is None and not observed.from_start:
        some = _some_rows(observed)
        return _rows_match(some, range(some.sizes[0]), limit)
    return all(
        _rows_match(observed, range(row, row + 1), limit) for row in _sample(observed.sizes[0])
    )


def matches_shown(observed: ObservedCall, wanted: Tensor) -> bool:
    """True if the weights that views show are the model's own in these rows, (…, query). Views
    multiply in float64. Where a huge number is added, the last digit of a product may decide what
    a score is rounded to."""
    observed = _before_dropout(observed)
    limit = TOLERANCE.get(observed.dtype or observed.query.dtype, 1e-5)
    return all(
        _rows_match(observed, rows, limit, precise=True)
        for rows in blocks(observed)
        if bool(wanted[..., rows.start : rows.stop].any())
    )


def _before_dropout(observed: ObservedCall) -> ObservedCall:
    """The call with its weights as they were before dropout, if they are there."""
    if not observed.dropout or observed.undropped is None:
        return observed
    return replace(observed, weights=observed.undropped, dropout=0.0)


def explains_output(observed: ObservedCall) -> bool:
    """True if Σ weight · value is the layer's own output, in a sample of the rows."""
    value, output = observed.value, observed.output
    assert value is not None and output is not None
    limit = OUTPUT_TOLERANCE.get(observed.dtype or output.dtype, 1e-4)
    for row in _sample(observed.sizes[0]):
        weights = formula_weights(observed, range(row, row + 1)).nan_to_num(0.0)  # blind: zeros
        wide = value.to(weights.dtype).repeat_interleave(weights.shape[1] // value.shape[1], dim=1)
        off = (weights @ wide - output[:, :, row : row + 1].to(weights.dtype)).abs()
        if not bool((off <= limit * max(1.0, float(wide.abs().max()))).all()):
            return False
    return True


def blocks(observed: ObservedCall) -> list[range]:
    """All rows, some at a time."""
    queries, keys = observed.sizes
    each = max(1, observed.query.shape[0] * observed.query.shape[1] * keys)
    step = max(1, MOST_AT_ONCE // each)
    return [range(first, min(first + step, queries)) for first in range(0, queries, step)]


def _sample(queries: int) -> list[int]:
    """Rows that are evenly spaced, the first and the last among them."""
    return sorted({round(i * (queries - 1) / (SAMPLED_ROWS - 1)) for i in range(SAMPLED_ROWS)})


def _some_rows(observed: ObservedCall) -> ObservedCall:
    """A call with a sample of the rows, the last among them: what is added to them does not go by
    their number. They are evenly spaced, so that nothing is copied."""
    last = observed.sizes[0] - 1
    step = max(1, last // (SAMPLED_ROWS - 1))
    first = last - step * min(SAMPLED_ROWS - 1, last // step)

    def some(part: Tensor | None) -> Tensor | None:
        return part if part is None or part.shape[2] == 1 else part[:, :, first::step]

    query, weights = some(observed.query), some(observed.weights)
    assert query is not None
    bias, mask = some(observed.bias), some(observed.mask)
    return replace(observed, query=query, weights=weights, bias=bias, mask=mask)


def _rows_match(
    observed: ObservedCall, rows: range, limit: float, *, precise: bool = False
) -> bool:
    assert observed.weights is not None
    ours = formula_weights(observed, rows, precise=precise)
    theirs = observed.weights[:, :, rows.start : rows.stop, : observed.sizes[1]].to(ours.dtype)
    if observed.after_dropout and observed.dropout:
        ours = torch.where(theirs == 0, 0.0, ours / (1 - observed.dropout))
    if ours.shape != theirs.shape:
        return False
    if float(torch.dist(ours, theirs, torch.inf)) <= limit:  # in one operation; not if one is NaN
        return True
    off = (ours - theirs).abs()
    largest = float(off.amax()) if off.numel() else 0.0
    if math.isnan(largest):  # where the model has NaN: a row that sees nothing
        return bool(((off <= limit) | theirs.isnan()).all())
    return largest <= limit


def _fits(observed: ObservedCall) -> bool:
    query, key = observed.query, observed.key
    if query.ndim != 4 or key.ndim != 4 or query.shape[3] != key.shape[3]:
        return False
    return query.shape[0] == key.shape[0] and query.shape[1] % key.shape[1] == 0


def formula_weights(observed: ObservedCall, rows: range, *, precise: bool = False) -> Tensor:
    """Some rows of all heads, (batch, head, row, key), by the formula; ``precise``: with products
    in float64, which are rounded before anything is added."""
    wide = torch.promote_types(observed.query.dtype, torch.float32)
    working = torch.float64 if precise else wide
    query = observed.query[:, :, rows.start : rows.stop].detach().to(working)
    key = observed.key.detach().to(working)
    # (batch, kv_head, group · row, key_dim): keys are not repeated for the heads that share them
    grouped = query.reshape(query.shape[0], key.shape[1], -1, query.shape[3])
    scores = (grouped @ key.transpose(2, 3)).reshape(*query.shape[:3], -1) * observed.scale
    if observed.softcap is not None:
        scores = observed.softcap * torch.tanh(scores / observed.softcap)
    scores = observed.scored(scores.to(wide), rows)
    if observed.sinks is not None:
        sink = observed.sinks.detach().to(wide)[:, None, None].expand(*scores.shape[:3], 1)
        return torch.softmax(torch.cat([scores, sink], dim=-1), dim=-1)[..., :-1]
    return torch.softmax(scores, dim=-1).nan_to_num_(0.0)


def spelled_out(observed: ObservedCall) -> ObservedCall | str:
    """The same call with the model's own weights as they came; or why they cannot be kept."""
    weights = observed.undropped if observed.dropout else observed.weights
    if weights is None:
        return "it computes attention in a way of its own"
    if weights.numel() > MOST_SPELLED:
        return (
            f"its scores fit no formula, and its {weights.numel():,} weights are too many to keep"
        )
    wide = weights.detach().to(torch.promote_types(weights.dtype, torch.float32))
    sums = wide.sum(dim=-1)
    half = weights.dtype in (torch.float16, torch.bfloat16)
    off = (sums - 1).abs() > (2e-2 if half else 1e-4)
    if bool((off & (sums != 0) & ~sums.isnan()).any()) or bool((wide < 0).any()):
        return "its weights do not sum to 1"
    logs = wide.nan_to_num(0.0).log()
    # The keys tell which calls continue one another; with queries of zeros they add nothing.
    key = observed.key.detach().to(wide.dtype).nan_to_num(0.0, 0.0, 0.0)
    if key.shape[0] != weights.shape[0] or weights.shape[1] % key.shape[1]:
        key = key.expand(*weights.shape[:2], -1, -1)
    return replace(
        observed,
        query=wide.new_zeros(()).expand(*weights.shape[:3], key.shape[3]),
        key=key[:, :, : weights.shape[3]],
        sinks=None,
        logsum=torch.where(sums > 0, sums.log(), 0.0),
        mask=None,
        rule=None,
        from_start=False,
        bias=logs,
        weights=weights,
        after_dropout=False,
        fill=None,
        spelled=True,
    )
