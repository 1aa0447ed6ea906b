"""The door at ``clearhead.attention``, which reports every call to its observers."""

from __future__ import annotations

from torch import Tensor

from clearhead.attention.call import Call
from clearhead.trace.watching.log_sum_exp import with_sinks
from clearhead.trace.watching.observed_call import ObservedCall
from clearhead.trace.watching.watchers import notify, observe


def own_call(call: Call, output: Tensor, logsum: Tensor | None) -> None:
    """Notify the watchers of a call of our own attention."""
    if call.query.numel() and call.key.shape[2]:
        observe(_notify, call, output, logsum)


def _notify(call: Call, output: Tensor, logsum: Tensor | None) -> None:
    notify(
        ObservedCall(
            call.query,
            call.key,
            call.value,
            scale=call.scale,
            output=output,
            logsum=None if logsum is None else with_sinks(logsum.detach(), call.sinks),
            rule=call.mask,
            bias=call.bias,
            softcap=call.softcap,
            sinks=call.sinks,
        )
    )
