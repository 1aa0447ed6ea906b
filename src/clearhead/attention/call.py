"""One attention call with its arguments checked and brought to one form.

Both paths start here: the plain one (``steps.py``) and the fast one (``fast.py``). After it, axes
are always (batch, head, query, …), the mask is a rule, and every default is filled in.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from clearhead.arguments import flag, real_number, whole_number
from clearhead.attention.checks import check_bias, check_sinks, explain_misfit, fit, map_shape
from clearhead.attention.masks import WHOLE, Band, Block, Mask, causal, dense, near_keys
from clearhead.errors import InputError
from clearhead.tensors import same_device

CAUSAL = causal()
LARGEST = 3e38  # kernels compute in float32


@dataclass(slots=True)
class Call:
    """The arguments of softmax(cap(query · keyᵀ · scale) + bias, masked) · value."""

    query: Float[Tensor, "batch head query key_dim"]
    key: Float[Tensor, "batch kv_head key key_dim"]
    value: Float[Tensor, "batch kv_head key value_dim"]
    mask: Mask | None
    bias: Float[Tensor, "#batch #head #query #key"] | None
    scale: float
    softcap: float | None
    sinks: Float[Tensor, " head"] | None
    leading: torch.Size  # the axes before head, as they were given; None of them for (query, …)
    headless: bool  # the tensors came without a head axis

    @property
    def group(self) -> int:
        """How many query heads share one key/value head."""
        return self.query.shape[1] // self.key.shape[1]

    @property
    def wants_gradient(self) -> bool:
        """True if autograd records this call."""
        if not torch.is_grad_enabled():
            return False
        inputs = (self.query, self.key, self.value, self.bias, self.sinks)
        return any(tensor is not None and tensor.requires_grad for tensor in inputs)

    @property
    def band(self) -> Band | None:
        """The visible keys of each query as a band; None if they are none, or a bias is added."""
        if self.bias is not None:
            return None
        return WHOLE if self.mask is None else self.mask.band

    def unflatten(self, result: Tensor) -> Tensor:
        """A result (batch, head, …) with the leading axes that the caller gave."""
        if self.headless:
            return result[0, 0]
        if len(self.leading) == 1:
            return result
        return result.reshape(*self.leading, *result.shape[1:])

    def block(self, rows: range) -> tuple[range, Tensor | None, Tensor | None]:
        """For a run of queries: the keys in reach, and there mask (None: all seen) and bias."""
        queries, keys = self.query.shape[2], self.key.shape[2]
        columns, seen, bias = range(keys), None, self.bias
        if self.mask is not None:
            columns = self.mask.reach(Block(rows, columns, queries, keys, self.query.device))
            block = Block(rows, columns, queries, keys, self.query.device)
            seen = None if self.mask.full(block) else self.mask.rule(block)
            if seen is not None:
                map_shape("mask", seen, (*self.query.shape[:2], len(rows), len(columns)))
        if bias is not None:
            bias = bias if bias.shape[2] == 1 else bias[:, :, rows.start : rows.stop]
            bias = bias if bias.shape[3] == 1 else bias[..., columns.start : columns.stop]
        return columns, seen, bias

    def narrowed(self, rows: range) -> Call:
        """The part of the call that computes these queries, with only the keys they can reach."""
        columns, seen, bias = self.block(rows)
        keys = slice(columns.start, columns.stop)
        return replace(
            self,
            query=self.query[:, :, rows.start : rows.stop],
            key=self.key[:, :, keys],
            value=self.value[:, :, keys],
            mask=None if seen is None else dense(seen),
            bias=bias,
            leading=self.query.shape[:1],
            headless=False,
        )


def attention_call(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Mask | Tensor | None,
    bias: Tensor | None,
    is_causal: bool,
    window_size: int | None,
    scale: float | None,
    softcap: float | None,
    sinks: Tensor | None,
) -> Call:
    """Check the arguments of one call and bring them to one form; errors name the argument."""
    if not fit(query, key, value):
        explain_misfit(query, key, value)
    is_causal = flag("causal", is_causal)
    headless = query.ndim == 2
    if headless:
        query, key, value = query[None], key[None], value[None]
    leading = query.shape[:-3]
    if len(leading) != 1 or not leading == key.shape[:-3] == value.shape[:-3]:
        leading = torch.broadcast_shapes(leading, key.shape[:-3], value.shape[:-3])  # type: ignore[no-untyped-call]
        query, key, value = (_flatten(tensor, leading) for tensor in (query, key, value))

    rule = None
    if mask is not None or bias is not None:
        whole = (*leading, *query.shape[1:3], key.shape[2])
        if mask is not None:
            rule = (
                mask
                if isinstance(mask, Mask)
                else dense(_flatten_map("mask", mask, whole, query.device))
            )
        if bias is not None:
            check_bias(bias)
            bias = _flatten_map("bias", bias, whole, query.device)
    if window_size is not None:
        everything = 2 * (query.shape[2] + key.shape[2]) + 1  # a larger window sees no more
        rule = _both(rule, _window(window_size, is_causal, everything))
    if is_causal and query.shape[2] != 1:  # aligned to the end, a single query sees every key
        rule = _both(rule, CAUSAL)
    if sinks is not None:
        check_sinks(sinks, heads=query.shape[1], device=query.device)
    if softcap is not None:
        softcap = real_number("softcap (None: no cap)", softcap, above=0)
        _fits_float32("softcap", softcap)
    if scale is None:
        scale = query.shape[3] ** -0.5
    else:
        scale = real_number("scale (None: 1/√key_dim)", scale)
        _fits_float32("scale", scale)
    return Call(query, key, value, rule, bias, scale, softcap, sinks, leading, headless)


def _fits_float32(name: str, number: float) -> None:
    if abs(number) > LARGEST:
        raise InputError(f"{name} must fit into float32, at most {LARGEST:g}; got {number}.")


def _flatten(tensor: Tensor, leading: torch.Size) -> Tensor:
    """(…, head, row, width) → (batch, head, row, width)."""
    tensor = tensor.expand(*leading, *tensor.shape[-3:])
    return tensor.reshape(leading.numel(), *tensor.shape[-3:])


def _flatten_map(name: str, given: Tensor, whole: tuple[int, ...], device: torch.device) -> Tensor:
    """A mask or bias as (batch or 1, head or 1, query or 1, key or 1)."""
    map_shape(name, given, whole)
    same_device(name, given, device)
    if given.ndim > 3 and len(whole) > 4:
        return _flatten(given, torch.Size(whole[:-3]))
    return given[(None,) * (4 - given.ndim)]


def _both(first: Mask | None, second: Mask) -> Mask:
    return second if first is None else first & second


def _window(size: int, is_causal: bool, everything: int) -> Mask:
    """At most ``size`` keys, the query's own included: behind it, or around it if not causal."""
    size = min(whole_number("window (keys, the query's own included)", size, least=1), everything)
    return near_keys(size - 1) if is_causal else near_keys(size // 2, (size - 1) // 2)
