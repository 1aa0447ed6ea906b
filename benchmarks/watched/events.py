"""What attention really ran: read off the operations below torch's Python functions.

A fused kernel is an event: its weights are computed again, plainly, from its arguments in float64.
A softmax whose result goes into a matrix product is an event, too: its result is the weights, but
for rows that are filled with another number before the product. None of it goes through ``watch``,
whose numbers are compared with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

SOFTMAXES = ("_softmax", "_safe_softmax", "_log_softmax")
PRODUCTS = ("bmm", "mm", "baddbmm", "addmm", "addbmm")
FOLLOWED = (
    "_to_copy", "clone", "native_dropout", "mul", "div", "masked_fill", "nan_to_num", "where",
    "exp", "constant_pad_nd", "copy", "cat", "add", "sub", "index_select", "neg", "convolution",
)  # fmt: skip
FLASH = "_scaled_dot_product_flash_attention_for_cpu"


@dataclass(frozen=True)
class Event:
    """One attention that ran: where, and with which weights (…, query, key)."""

    path: str
    operation: str
    weights: Tensor


@dataclass
class _Softmax:
    event: Event
    multiplied: bool = False


class Events(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Collects the attention of everything that runs while it is on."""

    def __init__(self, paths: dict[int, str]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.running: list[str] = []
        self._paths, self._found = paths, list[Event | _Softmax]()
        self._trails: dict[int, tuple[Tensor, _Softmax]] = {}  # by storage

    @property
    def events(self) -> list[Event]:
        """Attention in the order in which it ran; a softmax only if it was multiplied."""
        return [
            one.event if isinstance(one, _Softmax) else one
            for one in self._found
            if not isinstance(one, _Softmax) or one.multiplied
        ]

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """One operation."""
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if name == FLASH:
            self._found.append(Event(self._path(), "sdpa", _flash(*args, **(kwargs or {}))))
        elif name in SOFTMAXES:
            self._softmax(name, result)
        elif name in PRODUCTS:
            for trail in self._trails_of(args):
                trail.multiplied = True
        elif name.rstrip("_") in FOLLOWED:
            first = result[0] if isinstance(result, tuple) else result
            for trail in self._trails_of(args):
                self._trails[_storage(first)] = (first, trail)
                if name.startswith("masked_fill") and first.shape == trail.event.weights.shape:
                    trail.event = replace(trail.event, weights=first.detach().clone())
        return result

    def _softmax(self, name: str, result: Tensor) -> None:
        weights = result.detach().exp() if name == "_log_softmax" else result.detach()
        trail = _Softmax(Event(self._path(), "softmax", weights.clone()))
        self._found.append(trail)
        self._trails[_storage(result)] = (result, trail)

    def _trails_of(self, args: tuple[Any, ...]) -> list[_Softmax]:
        flat = [one for arg in args for one in (arg if isinstance(arg, list) else [arg])]
        found = [self._trails.get(_storage(one)) for one in flat if isinstance(one, Tensor)]
        return [entry[1] for entry in found if entry is not None]

    def _path(self) -> str:
        return self.running[-1] if self.running else ""


def _storage(tensor: Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _flash(
    query: Tensor,
    key: Tensor,
    _value: Tensor,
    _dropout: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> Tensor:
    """softmax(scale · query · key + mask), in float64."""
    shared = key.double().repeat_interleave(query.shape[1] // key.shape[1], dim=1)
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    scores = query.double() @ shared.transpose(-1, -2) * factor
    if is_causal:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(hidden, -torch.inf)
    if attn_mask is not None:
        scores = scores + attn_mask.double()
    return torch.softmax(scores, dim=-1).nan_to_num(0.0)


@contextmanager
def attention_of(model: nn.Module) -> Iterator[Events]:
    """The attention of ``model`` while the block runs. Fused layers of torch take their steps."""
    paths = {id(module): path for path, module in model.named_modules()}
    found = Events(paths)

    def enter(module: nn.Module, _inputs: Any) -> None:
        found.running.append(paths.get(id(module), "?"))

    def leave(_module: nn.Module, _inputs: Any, _output: Any) -> None:
        found.running.pop()

    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    hooks = [
        nn.modules.module.register_module_forward_pre_hook(enter),
        nn.modules.module.register_module_forward_hook(leave, always_call=True),
    ]
    try:
        with found:
            yield found
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
        for hook in hooks:
            hook.remove()
