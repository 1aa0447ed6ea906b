"""Attention in windows: Longformer's, and that of LED's encoder.

A token attends to its window and to the tokens with *global* attention; these attend to everything,
with projections of their own. The model puts its scores together from overlapping blocks, which
nobody can follow operation by operation. So the module runs as it is, and queries, keys and values
are projected once more beside it, from its own input and weights. The output is the module's own:
some rows are compared with it at once, and all of them by the proof.

The rows of tokens with global attention are a second call of the same module.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from clearhead.trace.watching.observed_call import ObservedCall
from clearhead.trace.watching.sample_check import explains_output
from clearhead.trace.watching.watchers import is_watching, notify, observe, refuse

_PROJECTIONS = ("query", "key", "value", "query_global", "key_global", "value_global")
_DECLARED = ("one_sided_attn_window_size", "num_heads", "head_dim", *_PROJECTIONS)
GLOBAL_NOTE = "rows of tokens with global attention are a call of their own"
UNEXPLAINED = "its windows give something else than it computed"
DROPPED = "dropout hides which weights its windows have; call eval()"
UNKNOWN = "its projections are not plain linear layers"


def windows_of(module: nn.Module) -> Callable[..., None] | None:
    """What observes a module that attends in windows, by what it declares; None for any other."""
    return window_call if all(hasattr(module, name) for name in _DECLARED) else None


def window_call(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
    """The module has run with these arguments: notify the watchers of its calls."""
    if result is not None and is_watching():
        observe(_notify, module, args, kwargs, result)


def _notify(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
    given = inspect.signature(module.forward).bind(*args, **kwargs).arguments
    if module.training and module.dropout:
        refuse(DROPPED)
        return
    if any(type(getattr(module, name)) is not nn.Linear for name in _PROJECTIONS):
        refuse(UNKNOWN)
        return
    calls = _calls(module, given, result[0])
    if not all(explains_output(call) for call in calls):
        refuse(UNEXPLAINED)
        return
    for call in calls:
        notify(call)


def _calls(module: Any, given: dict[str, Any], output: Tensor) -> list[ObservedCall]:
    states, numbers = given["hidden_states"].detach(), given["attention_mask"]
    attended = output.detach().unflatten(-1, (module.num_heads, -1)).transpose(1, 2)  # type: ignore[no-untyped-call]
    padding, is_global = numbers < 0, numbers > 0  # (batch, token)
    local = _local_call(module, states, attended, padding, is_global)
    if not bool(is_global.any()):
        return [local]
    local.note = GLOBAL_NOTE
    return [local, _global_call(module, states, attended, padding, is_global)]


def _projected(module: Any, name: str, states: Tensor) -> Tensor:
    """(batch, head, token, width)."""
    layer = getattr(module, name)
    wide = functional.linear(states, layer.weight.detach(), _detached(layer.bias))
    return wide.unflatten(-1, (module.num_heads, -1)).transpose(1, 2)  # type: ignore[no-untyped-call,no-any-return]


def _detached(bias: Tensor | None) -> Tensor | None:
    return None if bias is None else bias.detach()


def _local_call(
    module: Any, states: Tensor, output: Tensor, padding: Tensor, is_global: Tensor
) -> ObservedCall:
    """Every token to its window and to the global ones. Those, and padding, see nothing here."""
    place = torch.arange(states.shape[1], device=states.device)
    near = (place[:, None] - place).abs() <= module.one_sided_attn_window_size
    rows = ~(padding | is_global)
    keys = ((near & ~padding[:, None]) | is_global[:, None]) & rows[..., None]
    return ObservedCall(
        _projected(module, "query", states),
        _projected(module, "key", states),
        _projected(module, "value", states),
        scale=1 / math.sqrt(module.head_dim),
        output=output.masked_fill(~rows[:, None, :, None], 0.0),
        mask=keys[:, None],
        dtype=output.dtype,
    )


def _global_call(
    module: Any, states: Tensor, output: Tensor, padding: Tensor, is_global: Tensor
) -> ObservedCall:
    """The global tokens of each sequence, in order; the places of a shorter one see nothing."""
    count = int(is_global.sum(dim=1).max())
    order = is_global.int().argsort(dim=1, descending=True, stable=True)[:, :count]
    there = is_global.gather(1, order)  # (batch, global)
    asking = states.gather(1, order[..., None].expand(-1, -1, states.shape[2]))
    places = order[:, None, :, None].expand(-1, output.shape[1], -1, output.shape[3])
    return ObservedCall(
        _projected(module, "query_global", asking),
        _projected(module, "key_global", states),
        _projected(module, "value_global", states),
        scale=1 / math.sqrt(module.head_dim),
        output=output.gather(2, places).masked_fill(~there[:, None, :, None], 0.0),
        mask=(there[..., None] & ~padding[:, None])[:, None],
        dtype=output.dtype,
    )
