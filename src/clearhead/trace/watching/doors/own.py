"""The door at ``clearhead.attention``, which reports every call to its observers."""

from __future__ import annotations

from torch import Tensor

from clearhead.attention.call import Call
from clearhead.trace.watching.log_sum_exp import blind_rows, with_sinks
from clearhead.trace.watching.observed_call import ObservedCall
from clearhead.trace.watching.watchers import notify, observe


def own_call(call: Call, output: Tensor, logsum: Tensor | None) -> None:
    """Notify the watchers of a call of our own attention."""
    if call.query.numel() and call.key.shape[2]:
        observe(_notify, call, output, logsum)


def _notify(call: Call, output: Tensor, logsum: Tensor | None) -> None:
    observed = ObservedCall(
        call.query,
        call.key,
        call.value,
        scale=call.scale,
        output=output,
        logsum=None if logsum is None else logsum.detach(),
        rule=call.mask,
        bias=call.bias,
        softcap=call.softcap,
        sinks=call.sinks,
    )
    if observed.logsum is not None and call.sinks is not None:
        observed.logsum = with_sinks(observed.logsum, call.sinks, blind_rows(observed))
    notify(observed)
