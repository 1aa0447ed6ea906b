"""Mixed precision where the hardware has it: products in bfloat16, weights and sums in float32."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from clearhead.errors import InputError
from clearhead.training.settings import Precision

WIDE_ENOUGH = 256  # model width from which a CPU's bfloat16 saves more than the conversions cost


def mixed_precision(
    precision: Precision, device: torch.device, width: int
) -> AbstractContextManager[Any]:  # torch.autocast, or nothing
    """The context for a forward pass of a model of this width."""
    if computes_in_bfloat16(precision, device, width):
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return nullcontext()


def computes_in_bfloat16(precision: Precision, device: torch.device, width: int) -> bool:
    """True if a model of this width computes in bfloat16; ``auto``: only where that is faster."""
    has = has_bfloat16(device)
    if precision == "bfloat16" and not has:
        raise InputError(
            f"this {device.type} has no bfloat16 instructions; float32 is faster on it.",
            hint="leave precision at auto.",
        )
    quick = has and (device.type != "cpu" or width >= WIDE_ENOUGH)
    return precision == "bfloat16" or (precision == "auto" and quick)


def has_bfloat16(device: torch.device) -> bool:
    """True if the hardware has instructions for products in bfloat16."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type == "cpu":
        return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())
    return False
