"""Refuse NaN, with an error that says where it came from. The check must cost next to nothing."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from clearhead.attention.call import CAUSAL, Call
from clearhead.errors import NotFiniteError
from clearhead.kernels.plain_tensors import is_recorded, is_transformed

# With fewer keys than a vector register holds, torch's flash kernel gives zeros for a NaN query
# (seen below 8 keys with AVX2, below 16 with AVX-512).
HIDES_NAN = 16
SHORT = 1 << 17  # numbers; up to here a product with itself is quicker than two sums of a few


def refuse_nan(call: Call, output: Tensor, logsum: Tensor | None = None) -> None:
    """An error that names the argument which holds NaN, or ±inf that became NaN.

    Only on a CPU, where looking costs little, and not while torch compiles or transforms.
    """
    if output.device.type != "cpu" or is_recorded() or output.numel() == 0:
        return
    if is_transformed():
        return
    if output.requires_grad:
        output = output.detach()
    if logsum is not None and logsum.requires_grad:
        logsum = logsum.detach()
    if _shows(call, output, logsum):
        with torch.no_grad():
            _search(call, output)


def _shows(call: Call, output: Tensor, logsum: Tensor | None) -> bool:
    """NaN shows in the output, or, where the kernel takes a NaN query for one that sees nothing,
    as a log-sum-exp of 0. Only then are the arguments searched."""
    kernel_masks = call.mask is None or call.mask is CAUSAL  # of its own, block by block
    if kernel_masks and _looks_sound(output, logsum):
        shown = False
    else:
        shown = math.isnan(output.sum().item())
    if logsum is not None and (call.key.shape[2] < HIDES_NAN or not kernel_masks):
        shown = shown or not logsum.all().item()
    return shown


def _search(call: Call, output: Tensor) -> None:
    """Name what is wrong with the arguments."""
    names = ("query", "key", "value", "bias", "sinks")
    for name in names:
        tensor = getattr(call, name)
        if tensor is not None and math.isnan(tensor.sum().item()) and tensor.isnan().any():
            place = tuple(tensor.isnan().nonzero()[0].tolist())
            raise NotFiniteError(
                f"{name} holds NaN (first at {place} of {tuple(tensor.shape)}); every number must "
                "be real.",
                hint="a diverged training run or uninitialised memory (torch.empty)?",
            )
    if output.isnan().any():
        infinite = [name for name in names if _holds_infinity(getattr(call, name))]
        came = (
            f"{' and '.join(infinite)} holds ±inf"
            if infinite
            else "the scores of query and key overflow"
        )
        raise NotFiniteError(
            f"the result is NaN: {came}, and every number must be finite.",
            hint="half precision overflows at 65,504: compute in float32 or bfloat16.",
        )


def _looks_sound(output: Tensor, logsum: Tensor | None) -> bool:
    """True if one quick check finds neither NaN nor infinity; False for numbers above 10¹⁹ too.

    A short output is multiplied with itself. Of a long one the edges are a tenth of the work: the
    last query sees every key and every value, so what is wrong with one shows in its row; what is
    wrong with a query, in its log-sum-exp, or in the first column of the output.
    """
    if output.numel() <= SHORT and output.dtype is torch.float32:
        return short_is_finite(output)
    queries = output.select(-1, 0) if logsum is None else logsum
    return math.isfinite(queries.sum().item()) and math.isfinite(output.select(-2, -1).sum().item())


def short_is_finite(output: Tensor) -> bool:
    """True if a short result is finite and below 10¹⁹: its dot product with itself is finite."""
    if not output.is_contiguous():
        output = output.transpose(1, 2)  # as flash leaves it
    numbers = output.reshape(-1)
    return math.isfinite(torch.dot(numbers, numbers).item())


def _holds_infinity(tensor: Tensor | None) -> bool:
    return tensor is not None and bool(tensor.isinf().any())
