"""Checks that a tensor is plain numbers in memory, which our kernels read without torch."""

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


def has_memory(tensor: Tensor) -> bool:
    """False for a wrapper around others, as autograd's ``is_grads_batched`` hands out."""
    return torch._C._has_storage(tensor) and not is_transformed()


def is_differentiated(*tensors: Tensor) -> bool:
    """True if autograd records operations on one of the tensors."""
    if torch.is_grad_enabled():
        for tensor in tensors:  # any(…) would make a generator, and this is asked at every call
            if tensor.requires_grad:
                return True
    return False


def is_plain(tensor: Tensor) -> bool:
    """True if a kernel may read the tensor: float32 on a CPU, and autograd does not record it."""
    return is_float(tensor) and not is_differentiated(tensor)


def has_tangents() -> bool:
    """True while forward-mode derivatives are computed (``jvp``)."""
    return forward_ad._current_level >= 0


def is_recorded() -> bool:
    """True while torch records its operations, to compile, trace or export them."""
    return torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None


def is_transformed() -> bool:
    """True under ``vmap``, ``jvp`` or ``grad`` of ``torch.func``: its tensors are wrappers."""
    return has_tangents() or bool(torch._C._are_functorch_transforms_active())
