"""Checks of tensors that are arguments: token ids, flags, counts; of devices and number formats.

>>> import torch
>>> token_ids("ids", torch.tensor([5, 7, 97]))
Traceback (most recent call last):
...
clearhead.errors.ShapeError: ids must be (batch, query) with at least one token; got (3,).
Hint: one text needs a batch axis: ids[None].
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from clearhead.arguments import shown
from clearhead.errors import InputError, ShapeError

WHOLE = frozenset((torch.int64, torch.int32))


def dense_tensor(name: str, given: object) -> Tensor:
    """The argument as it is: a torch tensor with its numbers in memory, one after the other."""
    if not isinstance(given, Tensor):
        raise InputError(
            f"{name} must be a torch tensor; got {type(given).__name__}.",
            hint="torch.tensor(…) makes one of a list or an array.",
        )
    if given.is_nested or given.layout is not torch.strided:
        kind = "a nested one" if given.is_nested else str(given.layout)
        raise InputError(f"{name} must be a dense tensor; got {kind}.", hint="use .to_dense().")
    return given


def whole_numbers(name: str, given: object) -> Tensor:
    """A dense tensor of whole numbers."""
    tensor = dense_tensor(name, given)
    if tensor.dtype not in WHOLE:
        raise InputError(
            f"{name} must be whole numbers (torch.int64); got {tensor.dtype}.",
            hint="use .long() if they are whole.",
        )
    return tensor


def token_ids(name: str, given: object) -> Int[Tensor, "batch query"]:
    """Token ids (batch, query), at least one in each row."""
    ids = whole_numbers(name, given)
    if ids.ndim != 2 or ids.numel() == 0:
        raise ShapeError(
            f"{name} must be (batch, query) with at least one token; got {tuple(ids.shape)}.",
            hint=f"one text needs a batch axis: {name}[None]." if ids.ndim == 1 else None,
        )
    return ids


def token_numbers(
    name: str, given: object, ids: Tensor, *, count: int
) -> Int[Tensor, "batch query"]:
    """A whole number below ``count`` for each token."""
    numbers = whole_numbers(name, given)
    _shaped(name, numbers, ids)
    same_device(name, numbers, ids.device)
    within(name, numbers, count)
    return numbers


def token_flags(name: str, given: object, ids: Tensor) -> Bool[Tensor, "batch query"]:
    """True or False for each token."""
    flags = dense_tensor(name, given)
    if flags.dtype != torch.bool:
        raise InputError(
            f"{name} must be boolean, True for each real token; got {flags.dtype}.",
            hint="an attention_mask of 0 and 1 needs .bool().",
        )
    _shaped(name, flags, ids)
    same_device(name, flags, ids.device)
    return flags


def row_numbers(
    name: str, given: object, *, rows: int | None = None, least: int = 0, most: int | None = None
) -> Int[Tensor, " batch"]:
    """A whole number for each row of a batch."""
    numbers = whole_numbers(name, given)
    if numbers.ndim != 1 or (rows is not None and len(numbers) != rows):
        wanted = "(batch,)" if rows is None else f"({rows},)"
        raise ShapeError(
            f"{name} must be one number for each row, {wanted}; got {tuple(numbers.shape)}."
        )
    if numbers.is_meta:
        raise InputError(f"{name} must be numbers that are known; got a meta tensor.")
    if numbers.numel() and not recorded():
        low, high = (int(end) for end in numbers.aminmax())
        if low < least or (most is not None and high > most):
            upper = "or more" if most is None else f"to {most}"
            raise InputError(f"{name} must be {least} {upper}; got {low if low < least else high}.")
    return numbers


def same_device(name: str, tensor: Tensor, device: torch.device | None) -> None:
    """Refuse a tensor that is elsewhere than what it is used with."""
    if device is not None and tensor.device != device:
        raise InputError(
            f"{name} must be on {device}, as the rest is; got {tensor.device}.",
            hint=f'use .to("{device}").',
        )


def device_of(name: str, given: object, *, meta: bool = False) -> torch.device:
    """The device of a name, or as it is; there must be such a device here."""
    if not isinstance(given, str | torch.device):
        raise InputError(f'{name} must be a device such as "cpu"; got {shown(given)}.')
    try:
        device = torch.device(given)
        if device.type not in ("cpu", "meta"):
            torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(
            f"{name}: there is no device {shown(str(given))}: {reason}",
            hint="the CPU is always there: cpu.",
        ) from None
    if device.type == "meta" and not meta:
        raise InputError(f"{name}: nothing can be computed on the meta device.")
    return device


def float_type(name: str, given: object) -> torch.dtype:
    """A floating-point number format."""
    if not isinstance(given, torch.dtype) or not given.is_floating_point:
        raise InputError(
            f"{name} must be a floating-point type such as torch.float32; got {shown(given)}."
        )
    return given


def recorded() -> bool:
    """True while torch records or transforms its operations: numbers cannot be asked then."""
    return (
        torch.compiler.is_compiling()
        or torch._C._get_tracing_state() is not None
        or bool(torch._C._are_functorch_transforms_active())
    )


def _shaped(name: str, given: Tensor, ids: Tensor) -> None:
    if given.shape != ids.shape:
        raise ShapeError(
            f"{name} must have one entry for each token, {tuple(ids.shape)}; got "
            f"{tuple(given.shape)}."
        )


def within(name: str, numbers: Tensor, count: int) -> None:
    """Numbers from 0 up to below ``count``. Only on a CPU: elsewhere the answer takes long."""
    if not numbers.is_cpu or recorded():
        return
    low, high = (int(end) for end in numbers.aminmax())
    if low < 0 or high >= count:
        raise InputError(
            f"{name} must be whole numbers from 0 to {count - 1}; got {low if low < 0 else high}."
        )
