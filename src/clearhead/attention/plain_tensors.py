"""Whether tensors are plain numbers in memory: kernels of ours read them without asking torch."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd import forward_ad


def is_float(tensor: Tensor) -> bool:
    """Float32 on a CPU, a vector's numbers side by side."""
    return (
        (type(tensor) is Tensor or type(tensor) is torch.nn.Parameter)
        and tensor.dtype is torch.float32
        and tensor.is_cpu
        and tensor.stride(-1) == 1
    )


def is_differentiated(*tensors: Tensor) -> bool:
    """Whether somebody will ask for a gradient."""
    if torch.is_grad_enabled():
        for tensor in tensors:  # any(…) would make a generator, and this is asked at every call
            if tensor.requires_grad:
                return True
    return False


def is_plain(tensor: Tensor) -> bool:
    """Numbers in memory, and nobody who differentiates."""
    return is_float(tensor) and not is_differentiated(tensor)


def has_tangents() -> bool:
    """Whether derivatives are computed forwards (``jvp``)."""
    return forward_ad._current_level >= 0


def is_recorded() -> bool:
    """Whether torch writes down its operations, to compile or to export them."""
    return torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None


def is_transformed() -> bool:
    """Whether ``vmap``, ``jvp`` or ``grad`` is at work: its tensors are no plain ones."""
    return has_tangents() or bool(torch._C._are_functorch_transforms_active())
