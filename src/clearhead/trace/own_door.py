"""The door at our own attention: what ``clearhead.attention`` tells its observers."""

from __future__ import annotations

from torch import Tensor

from clearhead.attention.call import Call
from clearhead.trace.log_sum import with_sinks
from clearhead.trace.sighting import ACTIVE, Sighting


def own_call(call: Call, output: Tensor, logsum: Tensor | None) -> None:
    """Tell the watchers of a call of ours."""
    if call.query.numel() == 0 or call.key.shape[2] == 0:
        return
    ACTIVE.tell(
        Sighting(
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
